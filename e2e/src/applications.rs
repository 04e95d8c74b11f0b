//! The images that the tests run: applications in two versions each, one that crashes, one that does nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    client::Application,
    cluster::{
        Cluster, Missing,
        tools::{Tool, build},
    },
    image::{self, Entry, Image},
    say,
};

const ETCD_MODULE: &str = "go.etcd.io/etcd/server/v3";

/// An image and what its program says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `3.6.16`.
    pub version: String,
    /// `windlass.test/etcd:3.6.16`.
    pub image: String,
}

/// What an upgrade goes from and to.
pub struct Pair {
    /// Where it starts.
    pub old: Release,
    /// Where it goes.
    pub new: Release,
}

/// An image whose program exits with 3 at once.
pub const CRASHING: &str = "windlass.test/crash:1";
/// An image whose program runs and takes no connection.
pub const IDLE: &str = "windlass.test/idle:1";

/// An S3 server.
const MINIO: &str = "windlass.test/minio:1";

/// Whether everything is there that these applications are made from and that no command of ours builds.
pub fn check(applications: &BTreeSet<Application>) -> Result<()> {
    let variables = applications.iter().filter_map(|application| variables(*application));
    let missing = variables.flatten().filter(|(variable, _)| env::var_os(variable).is_none());
    let missing: Vec<String> =
        missing.map(|(variable, what)| format!("the variable {variable} (the path of a static {what})")).collect();
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing).into()) }
}

/// Where the old and the new program of an application come from that is in no registry.
fn variables(application: Application) -> Option<[(&'static str, &'static str); 2]> {
    match application {
        Application::Etcd => None,
        Application::OpenBao => {
            Some([("WINDLASS_E2E_OPENBAO", "bao to upgrade from"), ("WINDLASS_E2E_OPENBAO_NEW", "bao to upgrade to")])
        }
        Application::Pd => {
            Some([("WINDLASS_E2E_PD", "pd-server to upgrade from"), ("WINDLASS_E2E_PD_NEW", "pd-server to upgrade to")])
        }
    }
}

/// Builds the images of these applications and loads those that the node does not know yet.
pub fn load(cluster: &Cluster, applications: &BTreeSet<Application>) -> Result<BTreeMap<Application, Pair>> {
    check(applications)?;
    let known = cluster.images()?;
    let archives = cluster.folder().join("images");
    fs::create_dir_all(&archives)?;
    let ensure = |image: &Image, file: &str| -> Result<()> {
        if known.contains(&image.name) {
            return Ok(());
        }
        say(&format!("loading {}", image.name));
        image.write(&archives.join(file))?;
        cluster.load_image(&archives.join(file))
    };
    let shell = |script: &str| ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    ensure(&image::busybox(CRASHING, shell("echo 'this build can not start' >&2; exit 3")), "crash.tar")?;
    ensure(&idle(&archives.join("idle.sh"))?, "idle.tar")?;
    let mut pairs = BTreeMap::new();
    for application in applications {
        let [old, new] = programs(*application)?;
        let name = application.name();
        ensure(&old.image(*application), &format!("{name}-old.tar"))?;
        ensure(&new.image(*application), &format!("{name}-new.tar"))?;
        ensure!(old.release.version != new.release.version, "both programs of {name} are {}", old.release.version);
        pairs.insert(*application, Pair { old: old.release, new: new.release });
    }
    Ok(pairs)
}

/// MinIO, loaded where the node does not know it yet: the name of its image.
pub fn load_minio(cluster: &Cluster) -> Result<&'static str> {
    if !cluster.images()?.iter().any(|known| known == MINIO) {
        let program = build(Tool::Minio)?.join("minio");
        say(&format!("loading {MINIO}"));
        let mut image = image::busybox(MINIO, vec!["/usr/local/bin/minio".into()]);
        image.entries.push(("usr/local/bin/minio".into(), Entry::Program(program)));
        let archive = cluster.folder().join("images").join("minio.tar");
        image.write(&archive)?;
        cluster.load_image(&archive)?;
    }
    Ok(MINIO)
}

/// A program that can be started as any of the applications.
fn idle(script: &Path) -> Result<Image> {
    fs::write(script, "#!/bin/sh\nwhile :; do sleep 1; done\n")?;
    let mut image = image::busybox(IDLE, vec!["/usr/local/bin/idle".into()]);
    let program = |name: &str| (format!("usr/local/bin/{name}"), Entry::Program(script.to_owned()));
    image.entries.extend([program("idle"), program("bao")]);
    image.entries.extend(links(TOOLS));
    Ok(image)
}

/// What the start script of OpenBao's chart calls.
const TOOLS: &[&str] = &["cp", "pidof", "sed", "sleep"];

fn links(tools: &'static [&'static str]) -> impl Iterator<Item = (String, Entry)> {
    tools.iter().map(|tool| (format!("bin/{tool}"), Entry::Link("busybox".into())))
}

/// A program of an application, and what it says it is.
struct Program {
    path: PathBuf,
    release: Release,
}

impl Program {
    fn of(application: Application, path: PathBuf, version: &str) -> Self {
        let image = match application {
            Application::Etcd | Application::OpenBao => format!("windlass.test/{}:{version}", application.name()),
            // PD's tags begin with it.
            Application::Pd => format!("windlass.test/{}:v{version}", application.name()),
        };
        Self { path, release: Release { version: version.to_owned(), image } }
    }

    /// The program with a shell beside it, for the start scripts that people's StatefulSets have.
    fn image(&self, application: Application) -> Image {
        let (file, tools): (&str, &'static [&'static str]) = match application {
            Application::Etcd => ("etcd", &[]),
            Application::OpenBao => ("bao", TOOLS),
            Application::Pd => ("pd-server", &[]),
        };
        let mut image = image::busybox(&self.release.image, vec![format!("/usr/local/bin/{file}")]);
        image.entries.push((format!("usr/local/bin/{file}"), Entry::Program(self.path.clone())));
        image.entries.extend(links(tools));
        image
    }
}

/// The old and the new program of an application, and the versions that they are.
pub fn binaries(application: Application) -> Result<[(PathBuf, String); 2]> {
    Ok(programs(application)?.map(|program| (program.path, program.release.version)))
}

fn programs(application: Application) -> Result<[Program; 2]> {
    let etcd = |tool: Tool| -> Result<Program> {
        let version = tool.version(ETCD_MODULE)?;
        Ok(Program::of(application, build(tool)?.join("server"), version.trim_start_matches('v')))
    };
    let given = |variable: &str| -> Result<Program> {
        let path = PathBuf::from(env::var_os(variable).with_context(|| format!("{variable} is not set"))?);
        let version = version(application, &path).with_context(|| format!("what {variable} names is of no use"))?;
        Ok(Program::of(application, path, &version))
    };
    match variables(application) {
        None => Ok([etcd(Tool::EtcdOld)?, etcd(Tool::EtcdNew)?]),
        Some([(old, _), (new, _)]) => Ok([given(old)?, given(new)?]),
    }
}

/// The version as the program itself says it.
fn version(application: Application, program: &Path) -> Result<String> {
    let word = match application {
        Application::Etcd => "--version",
        Application::OpenBao => "version",
        Application::Pd => "-V",
    };
    let output = Command::new(program).arg(word).output();
    let output = output.with_context(|| format!("{} does not run", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    read_version(&text).with_context(|| format!("{} {word} tells no version", program.display()))
}

/// `OpenBao v2.5.5 (…), built …`, `Release Version: v8.5.3`.
fn read_version(text: &str) -> Option<String> {
    let numbers = text.split_whitespace().filter_map(|word| word.strip_prefix('v'));
    let mut versions = numbers.filter(|number| number.starts_with(|first: char| first.is_ascii_digit()));
    versions.next().map(|version| version.trim_end_matches(',').to_owned())
}

#[cfg(test)]
mod tests {
    use super::read_version;

    #[test]
    fn programs_say_their_versions() {
        let read = |text: &str| read_version(text);
        assert_eq!(read("OpenBao v2.5.5 (dcd5), built 2026-01-01\n").as_deref(), Some("2.5.5"));
        assert_eq!(read("Release Version: v8.5.3\nEdition: Community\n").as_deref(), Some("8.5.3"));
        assert_eq!(read("OpenBao (version unknown)"), None);
    }
}
