//! Layers from a script, and what they come to when they are applied from below, one entry after the other: the opposite of how they are read.
//!
//! A line is an entry: `f path` a file, whose bytes are the line's number, `d` a folder, `l` a symbolic link, `h` a hard link, `w` a deletion,
//! `o` an opaque folder; `-` begins the next layer up.

use std::collections::BTreeMap;

use windlass_images::contents::{Error, Limits};

use crate::{
    support::{Image, Tar, scratch},
    targets::name,
};

const PATH: &str = "usr/bin/minio";

pub const WORDS: &[&str] = &[
    "f usr/bin/minio\n",
    "w usr/bin/minio\n",
    "w usr\n",
    "o usr/bin\n",
    "o usr\n",
    "l usr/bin\n",
    "d usr/bin\n",
    "-\n",
];

pub fn seeds() -> Vec<Vec<u8>> {
    [
        "f usr/bin/minio\n-\nf usr/bin/minio\n-\nf usr/bin/mc\n",
        "f usr/bin/minio\n-\nw usr/bin/minio\n",
        "f usr/bin/minio\n-\nw usr\nf usr/bin/minio\n-\nd usr/bin\n",
        "f usr/bin/minio\n-\nd usr\no usr\n-\nf usr/bin/mc\n",
        "d usr/bin\n-\nl usr/bin\n-\nf usr/bin/minio\n",
        "f usr/bin/minio\n-\nl usr/bin/minio\n-\nh usr/bin\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File(String),
    Folder,
    Link,
}

pub fn run(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let (mut archives, mut truth) = (Vec::new(), BTreeMap::new());
    let mut lines: Vec<(usize, &str)> = text.lines().take(200).enumerate().collect();
    // Other names are other targets' business.
    lines.retain(|(_, line)| *line == "-" || line.get(2..).is_some_and(is_plain));
    for layer in lines.split(|(_, line)| *line == "-") {
        archives.push(archive(layer).done());
        apply(layer, &mut truth);
    }
    let folder = scratch();
    let result = Image::of(archives).take_all(&["/usr/bin/minio"], folder.path(), &Limits::default());
    let seen = truth.get(PATH);
    match result {
        Ok(_) => {
            let bytes = std::fs::read_to_string(folder.path().join("minio")).unwrap();
            assert_eq!(seen, Some(&Node::File(bytes)), "{text}");
            "Ok".to_owned()
        }
        Err(error @ Error::Missing { .. }) => {
            assert_eq!(seen, None, "{text}");
            name(&error)
        }
        Err(Error::Refused { refusal, .. }) => name(&refusal),
        Err(error) => panic!("{error}"),
    }
}

fn is_plain(path: &str) -> bool {
    path.len() < 90 && path.split('/').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase()))
}

fn archive(layer: &[(usize, &str)]) -> Tar {
    layer.iter().fold(Tar::default(), |tar, (number, line)| {
        let (kind, path) = line.split_at(2);
        let (parent, last) =
            path.rsplit_once('/').map_or((String::new(), path), |(parent, last)| (format!("{parent}/"), last));
        match kind {
            "f " => tar.file(path, number.to_string().as_bytes()),
            "d " => tar.folder(path),
            "l " => tar.entry(path, b'2', b""),
            "h " => tar.entry(path, b'1', b""),
            "w " => tar.file(&format!("{parent}.wh.{last}"), b""),
            "o " => tar.file(&format!("{path}/.wh..wh..opq"), b""),
            _ => tar,
        }
    })
}

/// Deletions first: they are about what is below.
fn apply(layer: &[(usize, &str)], truth: &mut BTreeMap<String, Node>) {
    let inside = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    for (_, line) in layer {
        match line.split_at(2) {
            ("w ", gone) => truth.retain(|path, _| path != gone && !inside(path, gone)),
            ("o ", folder) => truth.retain(|path, _| !inside(path, folder)),
            _ => {}
        }
    }
    for (number, line) in layer {
        let (kind, path) = line.split_at(2);
        let node = match kind {
            "f " => Node::File(number.to_string()),
            "d " => Node::Folder,
            "l " | "h " => Node::Link,
            _ => continue,
        };
        for (at, _) in path.match_indices('/') {
            truth.insert(path[..at].to_owned(), Node::Folder);
        }
        if node != Node::Folder || truth.get(path) != Some(&Node::Folder) {
            truth.retain(|other, _| !inside(other, path));
        }
        truth.insert(path.to_owned(), node);
    }
}
