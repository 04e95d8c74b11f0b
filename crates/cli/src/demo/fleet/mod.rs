//! A fleet: 200 resources of one kind in four tiers, the controller behind them, and a new image for all of them.

mod map;
pub mod picture;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use windlass_rehearsal::stamping::{self, dicom, image, reference_service, service_image};
use windlass_sim::{
    faults::Process,
    harness::{Cluster, patch_value},
};

pub use self::{map::Standing, picture::Picture};
use crate::demo::{
    Arguments, DEFINITION, PATIENCE, create, fleet::picture::Mark, frame, screen::Screen, summary::Fleet,
};

/// What they go from and to.
pub const WAY: (&str, &str) = ("v1", "v2");
/// The image that some people chose for theirs.
const CHOSEN: &str = "v1-patched";

/// A tier of the demo: its name, the names of its resources, how many the operator may change and how many it may not.
struct Group {
    tier: &'static str,
    resources: &'static str,
    managed: usize,
    manual: usize,
}

const GROUPS: [Group; 4] = [
    Group { tier: "earlyAccess", resources: "early", managed: 20, manual: 0 },
    Group { tier: "standard", resources: "standard", managed: 80, manual: 0 },
    Group { tier: "", resources: "other", managed: 60, manual: 2 },
    Group { tier: "regulated", resources: "regulated", managed: 40, manual: 1 },
];

/// The resources as their customers have them, and a ServiceImage that is content with that.
fn objects() -> Vec<Value> {
    let dicoms = GROUPS.iter().flat_map(|Group { tier, resources, managed, manual }| {
        (0..managed + manual).map(move |number| {
            let is_manual = number >= *managed;
            let mut one =
                dicom(&format!("{resources}-{number:02}"), tier, Some(if is_manual { CHOSEN } else { WAY.0 }));
            if is_manual {
                one["spec"]["manuallySpecifiedImage"] = json!(true);
            }
            one
        })
    });
    let tiers = json!([
        {"upgradeTier": "earlyAccess", "priority": 3, "canary": [{"percent": 10, "soak": "30s"}]},
        {"upgradeTier": "standard", "priority": 2, "maxInFlight": 12},
        {"upgradeTier": "", "priority": 1, "canary": [{"percent": 25, "soak": "15s"}]},
        {"upgradeTier": "regulated", "priority": 0, "maxInFlight": 8},
    ]);
    let mut wanted = service_image(tiers);
    wanted["spec"]["defaultImage"] = json!(image(WAY.0));
    let mut objects = stamping::objects(dicoms, wanted);
    // The other definitions are there.
    let kind = stamping::one("").resource;
    objects.retain(|object| object["kind"] != DEFINITION || object["metadata"]["name"] == kind.as_str());
    objects
}

/// The fleet: as it is, and the new image.
pub async fn upgrade(arguments: &Arguments, cluster: &Cluster) -> Result<Fleet> {
    let (from, to) = WAY;
    let begin = cluster.clock.elapsed();
    let controller = Process::new("dicom", cluster.clock, cluster.journal.clone(), arguments.seed);
    let seat = cluster.seat(&controller);
    create(cluster, objects())?;
    tokio::task::spawn_local(async move { controller.live(reference_service(seat)).await });
    let mut show = Show { cluster, screen: Screen::new(arguments), way: from.to_owned(), told: None };
    let count: usize = GROUPS.iter().map(|group| group.managed + group.manual).sum();
    show.say(&format!("{count} Dicoms at {from}, each with a Deployment; a ServiceImage of {} tiers", GROUPS.len()))?;
    if show.follow().await? {
        show.say("all of them serve")?;
        show.say(&format!("somebody sets spec.defaultImage to {}", image(to)))?;
        let patch = json!({"spec": {"defaultImage": image(to)}});
        if let Err(why) = patch_value(&cluster.api, &stamping::subject(), &patch) {
            bail!("the embedded cluster refused the new image: {why}");
        }
        show.way = format!("{from} → {to}");
        show.told = Some(BTreeSet::new());
        show.follow().await?;
    }
    show.refresh()?;
    Ok(Fleet::of(cluster, &picture(cluster, to), begin))
}

/// The fleet as it is.
fn picture(cluster: &Cluster, way: &str) -> Picture {
    let subject = stamping::subject();
    let fleet = cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name);
    let resources: Vec<Arc<Value>> = cluster.api.list_values(&stamping::one("").resource, stamping::NAMESPACE);
    Picture::of(fleet.as_deref().unwrap_or(&Value::Null), &resources, &format!("Dicom {way}"))
}

/// What the person at the terminal sees.
struct Show<'a> {
    cluster: &'a Cluster,
    screen: Screen,
    way: String,
    /// What was told of the tiers; none before the new image, when there is nothing to tell of them.
    told: Option<BTreeSet<(String, Mark)>>,
}

impl Show<'_> {
    /// Shows the fleet until all of it is up to date and the operator says so; false when that does not happen.
    async fn follow(&mut self) -> Result<bool> {
        let deadline = self.cluster.clock.elapsed() + PATIENCE;
        while self.cluster.clock.elapsed() < deadline {
            self.screen.rest().await;
            self.refresh()?;
            if picture(self.cluster, &self.way).is_done() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A new picture; without a terminal only where there is something to tell.
    fn refresh(&mut self) -> Result<()> {
        if self.screen.quiet {
            return Ok(());
        }
        let picture = picture(self.cluster, &self.way);
        let elapsed = self.cluster.clock.elapsed();
        let news = self.told.as_mut().map(|told| picture.news(told)).unwrap_or_default();
        let news: Vec<String> = news.iter().map(|news| format!("{}  {news}", frame::time(elapsed))).collect();
        let width = self.screen.width();
        if self.screen.live {
            return self.screen.draw(&news, &picture.lines(elapsed, self.screen.speed, width));
        }
        if !news.is_empty() {
            let block: Vec<String> = news.into_iter().chain(picture.map(width)).chain(picture.waits(width)).collect();
            let block = block.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty());
            self.screen.print(block.chain([""]))?;
        }
        Ok(())
    }

    fn say(&mut self, what: &str) -> Result<()> {
        self.refresh()?;
        let elapsed = self.cluster.clock.elapsed();
        let line = format!("{}  -- {what}", frame::time(elapsed));
        if self.screen.quiet {
            return Ok(());
        }
        if self.screen.live {
            let picture = picture(self.cluster, &self.way).lines(elapsed, self.screen.speed, self.screen.width());
            return self.screen.draw(&[line], &picture);
        }
        self.screen.print([line.as_str()])
    }
}
