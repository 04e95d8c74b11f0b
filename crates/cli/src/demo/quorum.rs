//! A quorum: as it is, what is planned, and the upgrade.

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use windlass_api::QuorumCluster;
use windlass_overview::{Outlook, QuorumOverview};
use windlass_rehearsal::{
    context,
    setting::{OPENBAO, Setting},
};
use windlass_sim::{faults::Process, harness::Cluster};

use crate::{
    demo::{
        Arguments, DEFINITION, PATIENCE, create,
        frame::{self, Frame},
        screen::Screen,
        summary::{Foreseen, Upgrade},
    },
    plan,
};

/// Three members as their users have them, at the version before.
fn objects(setting: &Setting) -> Vec<Value> {
    let (from, _) = setting.reference;
    let mut objects = setting.objects(3, from, from);
    objects.retain(|object| object["kind"] != DEFINITION);
    if *setting == OPENBAO {
        for object in objects.iter_mut().filter(|object| object["kind"] == "StatefulSet") {
            object["spec"]["podManagementPolicy"] = json!("Parallel");
            object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        }
    }
    objects
}

/// One system: as it is, what is planned, and the upgrade.
pub async fn upgrade(arguments: &Arguments, cluster: &Cluster, setting: Setting) -> Result<Upgrade> {
    let (from, to) = setting.reference;
    let begin = cluster.clock.elapsed();
    let mut show = Show::new(arguments, cluster, setting);
    create(cluster, objects(&setting))?;
    show.say(&format!("three members of {} at {from}", setting.system))?;
    let mut foreseen = Foreseen { steps: 0, leadership_moves: 0 };
    if show.follow(from).await? {
        let outlook = look(arguments, cluster, &setting).await?;
        foreseen = Foreseen { steps: outlook.steps.len(), leadership_moves: outlook.leadership_moves.len() };
        show.say(&format!("somebody asks for the plan of an upgrade to {to}: windlass plan"))?;
        show.print(&plan::text(&outlook))?;
        show.say(&format!("somebody sets spec.version to {to}"))?;
        let patch = json!({"spec": {"version": to}});
        if let Err(why) = windlass_sim::harness::patch_value(&cluster.api, &setting.subject(), &patch) {
            bail!("the embedded cluster refused the new version: {why}");
        }
        show.follow(to).await?;
    }
    show.refresh()?;
    Ok(Upgrade::of(cluster, &setting, foreseen, cluster.clock.elapsed().saturating_sub(begin)))
}

/// What `windlass plan` says of the resource with the new version in it.
async fn look(arguments: &Arguments, cluster: &Cluster, setting: &Setting) -> Result<Outlook> {
    let subject = setting.subject();
    let object = cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name);
    let mut resource: QuorumCluster = serde_json::from_value(object.as_deref().cloned().unwrap_or_default())?;
    resource.spec.version = Some(setting.reference.1.to_owned());
    let person = Process::new("person", cluster.clock, cluster.journal.clone(), arguments.seed);
    let context = context(cluster.seat(&person));
    plan::outlook(&context, &resource).await.map_err(|error| anyhow!(error.story()))
}

/// What the person at the terminal sees.
struct Show<'a> {
    cluster: &'a Cluster,
    setting: Setting,
    screen: Screen,
    /// How much of the journal was told.
    told: usize,
    last: String,
}

impl<'a> Show<'a> {
    fn new(arguments: &Arguments, cluster: &'a Cluster, setting: Setting) -> Self {
        let told = cluster.journal.entries().len();
        Self { cluster, setting, screen: Screen::new(arguments), told, last: String::new() }
    }

    /// Shows the cluster until all members run this version and the operator says so; false when that does not happen.
    async fn follow(&mut self, version: &str) -> Result<bool> {
        let deadline = self.cluster.clock.elapsed() + PATIENCE;
        while self.cluster.clock.elapsed() < deadline {
            self.screen.rest().await;
            self.refresh()?;
            let overview = self.overview();
            if overview.is_some_and(|one| one.is_at_rest() && one.running.as_deref() == Some(version)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn overview(&self) -> Option<QuorumOverview> {
        overview(self.cluster, &self.setting)
    }

    fn refresh(&mut self) -> Result<()> {
        if self.screen.quiet {
            return Ok(());
        }
        let lines = {
            let journal = self.cluster.journal.entries();
            let epoch = self.cluster.clock.epoch();
            let fresh = journal.iter().skip(self.told);
            let lines: Vec<String> =
                fresh.filter_map(|entry| frame::line(entry, self.setting.namespace, epoch)).collect();
            self.told = journal.len();
            lines
        };
        if self.screen.live {
            return self.draw(&lines);
        }
        for line in lines {
            // The same state twice, as when a follower's lag changes, is no news.
            if line.get(9..) != self.last.get(9..) {
                self.screen.print([line.as_str()])?;
            }
            self.last = line;
        }
        Ok(())
    }

    /// Draws the picture over the last one, the news scrolling away above it.
    fn draw(&mut self, news: &[String]) -> Result<()> {
        let Some(overview) = self.overview() else { return Ok(()) };
        let truths = self.cluster.world.truths();
        let truth = truths.iter().find(|truth| truth.namespace == self.setting.namespace);
        let frame = Frame::of(&overview, truth, self.cluster.clock.elapsed(), self.screen.speed);
        self.screen.draw(news, &frame.lines())
    }

    fn say(&mut self, what: &str) -> Result<()> {
        self.print(&format!("{}  -- {what}", frame::time(self.cluster.clock.elapsed())))
    }

    /// Some lines of text, after what has happened so far.
    fn print(&mut self, text: &str) -> Result<()> {
        self.refresh()?;
        if self.screen.quiet {
            return Ok(());
        }
        if self.screen.live {
            return self.draw(&text.lines().map(str::to_owned).collect::<Vec<_>>());
        }
        self.screen.print([text.trim_end()])
    }
}

/// How the quorum stands, by what the operator says; none where it is not there.
pub fn overview(cluster: &Cluster, setting: &Setting) -> Option<QuorumOverview> {
    let subject = setting.subject();
    let object = cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name)?;
    Some(QuorumOverview::read(&object, None))
}
