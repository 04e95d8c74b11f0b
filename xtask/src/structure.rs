//! Modules of `plan` use each other in one direction only: no two of them, by however many others, need one another. So each can be read
//! after those that it uses. The same holds for the rooms of `operator`: its folders, and the files beside them. And `sim` knows Kubernetes and
//! applications: nothing in its sources is called by a name of ours. Also told: how many lines the product has, without its tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::shell::root;

/// A module's path below the crate's root.
type Module = Vec<String>;
/// What each module uses.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

/// What `sim` must not name, whatever stands before or after it and in whichever case: our API group, crates and users, and our kinds.
const OURS: [&str; 3] = ["windlass", "quorumcluster", "serviceimage"];

/// What was checked.
pub struct Checked {
    /// Modules of `plan`.
    pub modules: usize,
    /// Rooms of `operator`.
    pub rooms: usize,
    /// Sources of `sim`.
    pub sources: usize,
}

/// How much there is of all that; an error that names a circle, or what `sim` names of ours, if there is any.
pub fn check() -> Result<Checked> {
    let modules = read(&root().join("crates/plan/src"))?;
    let rooms = rooms(&read(&root().join("crates/operator/src"))?);
    ensure!(modules.len() > 10 && rooms.len() > 10, "the modules of plan and operator were not found");
    for (of, uses) in [("plan", &modules), ("operator", &rooms)] {
        if let Some(circle) = circle(uses) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            anyhow::bail!("these modules of {of} use each other: {}", names.join(" → "));
        }
    }
    Ok(Checked { modules: modules.len(), rooms: rooms.len(), sources: strangers(&root().join("crates/sim/src"))? })
}

/// How many sources below this folder name nothing of ours; an error that says which do.
fn strangers(folder: &Path) -> Result<usize> {
    let mut sources = Vec::new();
    sources_below(folder, &mut sources)?;
    ensure!(sources.len() > 10, "the sources of sim were not found");
    let mut named = Vec::new();
    for path in &sources {
        let text = fs::read_to_string(path)?;
        let lines = names_of_ours(without_tests(&text));
        named.extend(lines.into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    ensure!(
        named.is_empty(),
        "sim knows Kubernetes and applications only, and here it names what is ours: {}",
        named.join(", ")
    );
    Ok(sources.len())
}

/// The lines, counted from one, that name something of ours.
fn names_of_ours(text: &str) -> Vec<usize> {
    let ours = |line: &str| OURS.iter().any(|name| line.to_lowercase().contains(name));
    text.lines().enumerate().filter(|(_, line)| ours(line)).map(|(number, _)| number + 1).collect()
}

/// The same where only the first part of a module's path counts.
fn rooms(uses: &Uses) -> Uses {
    let room = |module: &Module| module.iter().take(1).cloned().collect::<Module>();
    let mut rooms = Uses::new();
    for (module, others) in uses {
        let own = room(module);
        let others = others.iter().map(room).filter(|other| *other != own);
        rooms.entry(own.clone()).or_default().extend(others);
    }
    rooms
}

/// The product's lines, by crate, tests and blank lines left out.
pub fn lines() -> Result<Vec<(String, usize)>> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut sources = Vec::new();
        sources_below(&folder.join("src"), &mut sources)?;
        let count = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            without_tests(&text).lines().filter(|line| !line.trim().is_empty()).count()
        };
        lines.push((name, sources.iter().map(count).sum()));
    }
    lines.sort();
    Ok(lines)
}

/// All Rust sources below a folder, in order.
pub fn sources_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{} can't be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            sources_below(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

/// What every module below this folder uses of the others.
fn read(source: &Path) -> Result<Uses> {
    let mut files = Vec::new();
    sources_below(source, &mut files)?;
    let module = |path: &PathBuf| -> Module {
        let below = path.strip_prefix(source).unwrap_or(path).with_extension("");
        let mut names: Module = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        if names.last().is_some_and(|name| name == "mod") {
            names.pop();
        }
        names
    };
    // The root declares everything, and nobody uses what it re-exports for others.
    let files: BTreeMap<Module, PathBuf> =
        files.into_iter().map(|path| (module(&path), path)).filter(|(module, _)| *module != ["lib"]).collect();
    let known: BTreeSet<Module> = files.keys().cloned().collect();
    let mut uses = Uses::new();
    for (module, path) in &files {
        let text = fs::read_to_string(path)?;
        let code: String = without_tests(&text).lines().map(|line| line.split("//").next().unwrap_or(line)).fold(
            String::new(),
            |mut code, line| {
                code.push_str(line);
                code.push('\n');
                code
            },
        );
        let others = paths(&code).into_iter().filter_map(|path| resolve(&path, module, &known));
        uses.insert(module.clone(), others.filter(|other| other != module).collect());
    }
    Ok(uses)
}

/// All paths that code names. What it only hands on (`pub use`) is no use of its own.
fn paths(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    let mut rest = String::new();
    for statement in code.split_inclusive(';') {
        let declared = ["\nuse ", "\npub use ", "\npub(crate) use "].iter().find_map(|word| {
            let place = statement.rfind(word)?;
            Some((place, *word, statement.get(place + word.len()..)?.trim_end_matches(';')))
        });
        match declared {
            Some((place, word, tree)) => {
                rest.push_str(statement.get(..place).unwrap_or_default());
                if word == "\nuse " {
                    leaves(tree, &Vec::new(), &mut found);
                }
            }
            None => rest.push_str(statement),
        }
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let words = rest.split(|letter: char| !is_part(letter)).filter(|word| word.contains("::"));
    found.extend(words.map(|word| word.split("::").map(str::to_owned).collect::<Module>()));
    found
}

/// The paths of a `use` tree.
fn leaves(tree: &str, before: &Module, found: &mut Vec<Module>) {
    let tree = tree.trim();
    let names = |text: &str| -> Module {
        let text = text.split(" as ").next().unwrap_or(text);
        text.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    let Some((head, inside)) = tree.split_once('{') else {
        if !tree.is_empty() {
            found.push(before.iter().cloned().chain(names(tree)).collect());
        }
        return;
    };
    let before: Module = before.iter().cloned().chain(names(head)).collect();
    let (mut depth, mut start) = (0_usize, 0);
    let inside = inside.rsplit_once('}').map_or(inside, |(inside, _)| inside);
    for (place, letter) in inside.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                leaves(inside.get(start..place).unwrap_or_default(), &before, found);
                start = place + 1;
            }
            _ => {}
        }
    }
    leaves(inside.get(start..).unwrap_or_default(), &before, found);
}

/// The module that a path leads into, as seen from another one.
fn resolve(path: &Module, from: &Module, known: &BTreeSet<Module>) -> Option<Module> {
    let mut base: Module = Vec::new();
    let mut rest = path.as_slice();
    match rest.first().map(String::as_str)? {
        "crate" => rest = rest.get(1..)?,
        "self" => (base, rest) = (from.clone(), rest.get(1..)?),
        "super" => {
            base.clone_from(from);
            while rest.first().is_some_and(|name| name == "super") {
                base.pop();
                rest = rest.get(1..)?;
            }
        }
        // Only what it declares itself goes by its bare name; everything else was imported.
        _ => base.clone_from(from),
    }
    base.extend(rest.iter().cloned());
    (1..=base.len())
        .rev()
        .filter_map(|length| base.get(..length).map(<[String]>::to_vec))
        .find(|one| known.contains(one))
}

/// Modules that lead back to the first of them; none where no path does.
fn circle(uses: &Uses) -> Option<Vec<Module>> {
    let mut done = BTreeSet::new();
    uses.keys().find_map(|start| walk(start, uses, &mut Vec::new(), &mut done))
}

fn walk(module: &Module, uses: &Uses, way: &mut Vec<Module>, done: &mut BTreeSet<Module>) -> Option<Vec<Module>> {
    if let Some(place) = way.iter().position(|one| one == module) {
        let mut circle = way.get(place..).unwrap_or_default().to_vec();
        circle.push(module.clone());
        return Some(circle);
    }
    if done.contains(module) {
        return None;
    }
    way.push(module.clone());
    let found = uses.get(module).into_iter().flatten().find_map(|next| walk(next, uses, way, done));
    way.pop();
    done.insert(module.clone());
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Module, Uses, circle, names_of_ours, paths, resolve, without_tests};

    fn module(path: &str) -> Module {
        path.split("::").map(str::to_owned).collect()
    }

    fn known() -> BTreeSet<Module> {
        ["a", "b", "b::c", "b::d"].map(module).into()
    }

    fn used(from: &str, code: &str) -> Vec<String> {
        let found = paths(&format!("\n{code}"));
        let others = found.iter().filter_map(|path| resolve(path, &module(from), &known()));
        others.map(|one| one.join("::")).filter(|one| one != from).collect()
    }

    #[test]
    fn what_a_module_uses() {
        assert_eq!(used("a", "use crate::{b::{self, c::Thing}, x};\n"), ["b", "b::c"]);
        assert_eq!(used("b::c", "use super::d::{One, Two};\nuse std::fmt;\n"), ["b::d", "b::d"]);
        assert_eq!(used("a", "fn f() -> crate::b::d::One { 1 }\n"), ["b::d"]);
        assert_eq!(used("b", "pub mod c;\npub use c::Thing;\nfn f() { d::go(); }\n"), ["b::d"]);
    }

    #[test]
    fn what_is_ours_is_found_by_its_line() {
        let text = "use windlass_plan::bug;\nlet pods = \"pods\";\nlet kind = \"quorumclusters.windlass.dev\";\nstruct ServiceImage;\n";
        assert_eq!(names_of_ours(text), [1, 3, 4]);
        let tests = "fn pods() {}\n#[cfg(test)]\nmod tests { const KIND: &str = \"QuorumCluster\"; }\n";
        assert_eq!(names_of_ours(without_tests(tests)), Vec::<usize>::new());
    }

    #[test]
    fn a_circle_is_named() {
        let of = |ways: &[(&str, &[&str])]| -> Uses {
            ways.iter().map(|(from, to)| (module(from), to.iter().map(|to| module(to)).collect())).collect()
        };
        assert_eq!(circle(&of(&[("a", &["b", "d"]), ("b", &["c", "d"]), ("c", &["d"]), ("d", &[])])), None);
        let found = circle(&of(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])])).unwrap_or_default();
        assert_eq!(found, ["b", "c", "b"].map(module));
    }
}
