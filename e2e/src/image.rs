//! OCI images from static programs, without a container engine. The same files give the same bytes.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

/// A program or a link in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file of this machine, executable by everybody.
    Program(PathBuf),
    /// A symbolic link.
    Link(String),
}

/// What an image is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its full name, with a tag.
    pub name: String,
    /// Where in the image, without the leading slash, and what.
    pub entries: Vec<(String, Entry)>,
    /// What is run.
    pub entrypoint: Vec<String>,
    /// Who runs it: `65532:65532`, or nothing for root.
    pub user: String,
    /// Labels, such as the version.
    pub labels: Vec<(String, String)>,
}

impl Image {
    /// Writes the image as an OCI archive; its manifest's digest.
    pub fn write(&self, archive: &Path) -> Result<String> {
        let layer = self.layer()?;
        let layer_digest = digest(&layer);
        let labels: serde_json::Map<String, Value> =
            self.labels.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
        let config = serde_json::to_vec(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "Env": ["PATH=/usr/local/bin:/bin"],
                "User": self.user,
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        }))?;
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(&config), "size": config.len()},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer_digest, "size": layer.len()}],
        }))?;
        let manifest_digest = digest(&manifest);
        let index = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": manifest_digest,
                "size": manifest.len(),
                "platform": {"os": "linux", "architecture": architecture()},
                "annotations": {"io.containerd.image.name": self.name, "org.opencontainers.image.ref.name": self.name},
            }],
        }))?;
        let file = fs::File::create(archive).with_context(|| format!("{} can't be written", archive.display()))?;
        let mut tar = Builder::new(file);
        append(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#, 0o644)?;
        append(&mut tar, "index.json", &index, 0o644)?;
        for blob in [&layer, &config, &manifest] {
            append(&mut tar, &format!("blobs/sha256/{}", digest(blob).trim_start_matches("sha256:")), blob, 0o644)?;
        }
        tar.into_inner()?.flush()?;
        Ok(manifest_digest)
    }

    fn layer(&self) -> Result<Vec<u8>> {
        let mut entries = self.entries.clone();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        let mut tar = Builder::new(Vec::new());
        let mut folders: Vec<String> = vec!["tmp".into()];
        for (path, _) in &entries {
            let parents = Path::new(path).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
            folders.extend(parents.map(|parent| parent.display().to_string()));
        }
        folders.sort();
        folders.dedup();
        for folder in folders {
            let mut header = header(0, if folder == "tmp" { 0o1777 } else { 0o755 });
            header.set_entry_type(EntryType::Directory);
            tar.append_data(&mut header, format!("{folder}/"), std::io::empty())?;
        }
        for (path, entry) in entries {
            match entry {
                Entry::Program(from) => {
                    let bytes = fs::read(&from).with_context(|| format!("{} can't be read", from.display()))?;
                    append(&mut tar, &path, &bytes, 0o755)?;
                }
                Entry::Link(to) => {
                    let mut header = header(0, 0o777);
                    header.set_entry_type(EntryType::Symlink);
                    tar.append_link(&mut header, path, to)?;
                }
            }
        }
        Ok(tar.into_inner()?)
    }
}

/// The image that holds a pod's namespaces: a program that waits.
pub fn pause(name: &str, archive: &Path) -> Result<String> {
    busybox(name, vec!["/bin/busybox".into(), "sleep".into(), "2147483647".into()]).write(archive)
}

/// An image with busybox, as a shell and as nothing else.
pub fn busybox(name: &str, entrypoint: Vec<String>) -> Image {
    Image {
        name: name.to_owned(),
        entries: vec![
            ("bin/busybox".into(), Entry::Program("/bin/busybox".into())),
            ("bin/sh".into(), Entry::Link("busybox".into())),
        ],
        entrypoint,
        user: String::new(),
        labels: Vec::new(),
    }
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

/// Nothing of this machine: no time, no owner.
fn header(size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn append<W: Write>(tar: &mut Builder<W>, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
    let mut header = header(u64::try_from(bytes.len())?, mode);
    header.set_entry_type(EntryType::Regular);
    tar.append_data(&mut header, path, bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Entry, Image};

    fn image(program: &std::path::Path) -> Image {
        Image {
            name: "windlass.test/one:1".into(),
            entries: vec![
                ("usr/local/bin/one".into(), Entry::Program(program.into())),
                ("bin/sh".into(), Entry::Link("busybox".into())),
            ],
            entrypoint: vec!["/usr/local/bin/one".into()],
            user: "65532:65532".into(),
            labels: vec![("org.opencontainers.image.version".into(), "1".into())],
        }
    }

    #[test]
    fn the_same_files_give_the_same_image_and_others_another() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("one");
        std::fs::write(&program, "a program").unwrap();
        let mut turned = image(&program);
        turned.entries.reverse();
        let first = image(&program).write(&folder.path().join("first.tar")).unwrap();
        let second = turned.write(&folder.path().join("second.tar")).unwrap();
        assert_eq!(first, second);
        let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert_eq!(bytes("first.tar"), bytes("second.tar"));
        std::fs::write(&program, "another program").unwrap();
        assert_ne!(first, image(&program).write(&folder.path().join("third.tar")).unwrap());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let error = image(&missing).write(&folder.path().join("image.tar")).unwrap_err();
        assert!(format!("{error:#}").contains("missing"), "{error:#}");
    }
}
