//! Two hundred mutations of each fixture, made and judged by the program that made the fixture.

use std::{collections::BTreeMap, ops::Range};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use windlass_images::verify::{Candidate, verify};

use super::fixtures::{Fixture, Parts, alone, fixture, is_verified, policy, text};

/// A line: `+` or `-` for cosign's verdict, what was changed, the part, where, how many bytes went, and what came instead.
struct Mutation<'a> {
    accepted: bool,
    what: &'a str,
    part: &'a str,
    range: Range<usize>,
    inserted: Vec<u8>,
}

impl<'a> Mutation<'a> {
    fn parse(line: &'a str) -> Self {
        let (sign, rest) = line.split_at(1);
        let [what, part, at, removed, inserted] = rest.splitn(5, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let at: usize = at.parse().expect("a place");
        let removed: usize = removed.parse().expect("a length");
        let (how, value) = inserted.split_at(1);
        let inserted = match how {
            "'" => value.as_bytes().to_vec(),
            "=" => STANDARD.decode(value).expect("base64"),
            "@" => {
                let [other, part, at, length] = value.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
                let (at, length): (usize, usize) = (at.parse().expect("a place"), length.parse().expect("a length"));
                content(&fixture(other).candidate, part)[at..at + length].to_vec()
            }
            _ => panic!("{line}"),
        };
        Self { accepted: sign == "+", what, part, range: at..at + removed, inserted }
    }

    fn apply(&self, parts: &Parts) -> Candidate {
        let mut changed = content(parts, self.part).to_vec();
        changed.splice(self.range.clone(), self.inserted.iter().copied());
        if self.part == "B" {
            return Candidate::Bundle(changed.into());
        }
        let mut annotations = parts.annotations.clone();
        let mut payload = Bytes::from(parts.payload.clone());
        if self.part == "P" {
            payload = changed.into();
        } else {
            // What an annotation says is text; the program changes none to anything else.
            annotations.insert(annotation(self.part).to_owned(), String::from_utf8(changed).expect("text"));
        }
        Candidate::Simple { payload, annotations }
    }
}

fn content<'a>(parts: &'a Parts, part: &str) -> &'a [u8] {
    match part {
        "P" => parts.payload.as_bytes(),
        "B" => parts.bundle.as_bytes(),
        _ => parts.annotations[annotation(part)].as_bytes(),
    }
}

fn annotation(part: &str) -> &'static str {
    match part {
        "s" => "dev.cosignproject.cosign/signature",
        "c" => "dev.sigstore.cosign/certificate",
        "h" => "dev.sigstore.cosign/chain",
        "b" => "dev.sigstore.cosign/bundle",
        "r" => "dev.sigstore.cosign/rfc3161timestamp",
        _ => panic!("no part {part}"),
    }
}

/// Where cosign accepts a mutation and we don't: the fixtures by a part of their name, what was changed, and the reason.
const WE_REFUSE_MORE: &[(&str, &[&str], &str)] = &[
    // H49.
    ("sbom-", &[], "cosign does not look at the type of a statement"),
    ("-bundle", &["kind", "version", "kindVersion"], "cosign guesses the kind of a log entry from its body"),
    (
        "keyless-",
        &["signedTimestamp", "rfc3161Timestamps", "timestampVerificationData", "SignedRFC3161Timestamp"],
        "a timestamp must be good also where the log has told the time",
    ),
    (
        "-bundle-log2",
        &["canonicalizedBody", "rootHash", "treeSize"],
        "cosign computes the entry and its proof from the rest and does not read these",
    ),
    ("-tag", &["chain"], "cosign skips what it can't read of a chain, and what it does not need"),
    ("-bundle", &["signedEntryTimestamp"], "cosign takes a promise that says nothing for none"),
];

fn why_we_refuse_more(fixture: &Fixture, mutation: &Mutation<'_>) -> Option<&'static str> {
    let (_, changed) = mutation.what.split_once(':').expect("how and what");
    let fits = |(name, members, _): &&(&str, &[&str], &str)| {
        fixture.name.contains(name) && (members.is_empty() || members.contains(&changed))
    };
    WE_REFUSE_MORE.iter().find(fits).map(|(_, _, reason)| *reason)
}

#[test]
fn cosign_accepts_what_we_accept() {
    let lines = text("mutations.txt");
    let mut current = None;
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let mut differences = Vec::new();
    for line in lines.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            current = Some(fixture(name));
            continue;
        }
        let fixture = current.expect("a heading comes first");
        let mutation = Mutation::parse(line);
        let candidate = mutation.apply(&fixture.candidate);
        let ours = verify(policy(&fixture.policy), &fixture.subject(), &alone(candidate));
        *counted.entry(&fixture.name).or_default() += 1;
        match (mutation.accepted, is_verified(&ours)) {
            (true, true) | (false, false) => {}
            (true, false) if let Some(reason) = why_we_refuse_more(fixture, &mutation) => {
                *reasons.entry(reason).or_default() += 1;
            }
            _ => differences.push(format!("{} {line}\n    we: {ours:?}", fixture.name)),
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert!(counted.values().all(|count| *count == 200), "{counted:?}");
    let unused: Vec<_> = WE_REFUSE_MORE.iter().filter(|(_, _, reason)| !reasons.contains_key(reason)).collect();
    assert!(unused.is_empty(), "no mutation needs {unused:?}");
}
