//! The configuration of an image: what it is for, what it is started with, and what its layers are unpacked.

use serde::Deserialize;

use crate::{
    Digest,
    document::{Platform, Unreadable, cut, form, object::Object, within},
};

/// The longest configuration that is read. Most have some kilobytes; a long history of a build makes the longest.
pub const CONFIG_LIMIT: usize = 8 * 1024 * 1024;

/// What an image says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What it is for.
    pub platform: Platform,
    /// The environment that its processes get, `NAME=value`.
    pub env: Vec<String>,
    /// The digests of its layers once they are unpacked, the lowest first.
    pub diff_ids: Vec<Digest>,
}

#[derive(Deserialize)]
struct Wire {
    os: String,
    architecture: String,
    variant: Option<String>,
    config: Option<Object<Process>>,
    rootfs: Object<Root>,
}

#[derive(Deserialize)]
struct Process {
    #[serde(rename = "Env")]
    env: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Root {
    #[serde(rename = "type")]
    kind: String,
    diff_ids: Option<Vec<String>>,
}

impl Config {
    /// Reads the configuration of an image.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        within(bytes, CONFIG_LIMIT)?;
        let Wire { os, architecture, variant, config, rootfs: Object(rootfs) } = form(bytes)?;
        if rootfs.kind != "layers" {
            return Err(Unreadable::Form(format!(
                "its files are kept as {}, and only layers are known",
                cut(&rootfs.kind)
            )));
        }
        let diff_ids = rootfs
            .diff_ids
            .unwrap_or_default()
            .into_iter()
            .map(|text| text.parse().map_err(|why| Unreadable::Form(format!("{} {why}", cut(&text)))));
        Ok(Self {
            platform: Platform { os, architecture, variant },
            env: config.and_then(|Object(process)| process.env).unwrap_or_default(),
            diff_ids: diff_ids.collect::<Result<_, _>>()?,
        })
    }
}
