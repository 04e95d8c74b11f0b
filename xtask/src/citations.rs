//! Numbers that code cites (C3, H7) must resolve inside the project: in docs/requirements.md and docs/hazards.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::shell::root;

/// How many different numbers are cited; an error if one of them leads nowhere.
pub fn check() -> Result<usize> {
    let known = known()?;
    let mut cited: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in ["crates", "xtask"] {
        visit(&root().join(folder), &mut cited)?;
    }
    let lost: Vec<String> = cited
        .iter()
        .filter(|(number, _)| !known.contains(*number))
        .map(|(number, file)| format!("{number} in {}", file.display()))
        .collect();
    ensure!(lost.is_empty(), "cited and not in docs/requirements.md or docs/hazards.md: {}", lost.join(", "));
    Ok(cited.len())
}

/// The numbers that the documents define: the first word of a list item.
fn known() -> Result<BTreeSet<String>> {
    let mut known = BTreeSet::new();
    for file in ["docs/requirements.md", "docs/hazards.md"] {
        let text = fs::read_to_string(root().join(file)).with_context(|| format!("{file} can't be read"))?;
        let items = text.lines().filter_map(|line| line.strip_prefix("- ")).filter_map(|item| item.split(' ').next());
        known.extend(items.map(|number| number.trim_matches('*').to_owned()).filter(|word| is_number(word)));
    }
    Ok(known)
}

fn visit(folder: &Path, cited: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            visit(&path, cited)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            // Citations stand in comments, in parentheses or after "as".
            for comment in text.lines().filter_map(|line| line.split_once("//").map(|(_, comment)| comment)) {
                for word in comment.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_number(word)) {
                    cited
                        .entry(word.to_owned())
                        .or_insert_with(|| path.strip_prefix(root()).unwrap_or(&path).to_path_buf());
                }
            }
        }
    }
    Ok(())
}

/// A letter of a chapter and a number.
fn is_number(word: &str) -> bool {
    let mut characters = word.chars();
    let chapter = characters.next().is_some_and(|letter| "ABCDEXH".contains(letter));
    let digits = characters.as_str();
    chapter && (1..=2).contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_digit())
}
