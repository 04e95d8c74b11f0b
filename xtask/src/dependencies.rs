//! Every dependency that a crate declares is named somewhere in its code, and every one that the workspace declares in one of its crates: what
//! nobody uses is built and audited all the same.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{shell::root, structure::sources_below};

/// How many dependencies are used; an error names those that are not.
pub fn check() -> Result<usize> {
    let mut used = BTreeSet::new();
    let (mut declared, mut unused) = (0, Vec::new());
    for folder in crates()? {
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        let code = code(&folder)?;
        for name in dependencies(&manifest) {
            declared += 1;
            if !is_named(&code, name) {
                unused.push(format!("{name} of {}", folder.strip_prefix(root()).unwrap_or(&folder).display()));
            }
            used.insert(name.to_owned());
        }
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml"))?;
    unused.extend(
        dependencies(&workspace).filter(|name| !used.contains(*name)).map(|name| format!("{name} of the workspace")),
    );
    ensure!(declared > 50, "the dependencies were not found");
    ensure!(unused.is_empty(), "nobody uses {}", unused.join(", "));
    Ok(declared)
}

fn crates() -> Result<Vec<PathBuf>> {
    let mut folders = vec![root().join("e2e"), root().join("xtask"), root().join("examples/dicom")];
    for entry in fs::read_dir(root().join("crates"))? {
        folders.push(entry?.path());
    }
    folders.sort();
    Ok(folders)
}

/// All code of a crate, its tests too.
fn code(folder: &Path) -> Result<String> {
    let mut files = Vec::new();
    for part in ["src", "tests"].map(|part| folder.join(part)).iter().filter(|part| part.is_dir()) {
        sources_below(part, &mut files)?;
    }
    let texts = files.iter().map(|file| fs::read_to_string(file).with_context(|| format!("{}", file.display())));
    texts.collect()
}

/// The names in all tables of dependencies.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if let Some(table) = line.strip_prefix('[') {
            inside = table.trim_end_matches(']').ends_with("dependencies");
            return None;
        }
        let name = line.split(['.', '=', ' ']).next().filter(|_| inside && line.contains('='))?;
        (!name.is_empty() && !name.starts_with('#')).then_some(name)
    })
}

/// Whether code names the crate that is called so. The name of the one in `md-5` has no hyphen at all.
fn is_named(code: &str, dependency: &str) -> bool {
    let names = [dependency.replace('-', "_"), dependency.replace('-', "")];
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    code.split(|letter: char| !is_part(letter)).any(|word| names.iter().any(|name| name == word))
}

#[cfg(test)]
mod tests {
    use super::{dependencies, is_named};

    #[test]
    fn what_is_declared_and_what_is_named() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\n# why\nmd-5.workspace = true\nkube = { version = \"5\",\n[dev-dependencies]\nrstest = \"1\"\n[lints]\nworkspace = true\n";
        assert_eq!(dependencies(manifest).collect::<Vec<_>>(), ["md-5", "kube", "rstest"]);
        assert!(is_named("use md5::Md5;", "md-5") && is_named("use a_b::c;", "a-b"));
        assert!(!is_named("use kubes::Api;", "kube"));
    }
}
