//! Reads what `e2e/tools/signatures` wrote.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::LazyLock};

use bytes::Bytes;
use serde::Deserialize;
use windlass_images::{
    Digest,
    verify::{Candidate, Gathered, Identity, Policy, TrustRoot, Verdict, verify},
};

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixture {
    pub name: String,
    pub subject: String,
    pub policy: String,
    pub candidate: Parts,
}

#[derive(Clone, Deserialize)]
pub struct Parts {
    #[serde(default)]
    pub payload: String,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub bundle: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    policies: BTreeMap<String, WrittenPolicy>,
    trust_roots: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPolicy {
    #[serde(default)]
    key: String,
    #[serde(default)]
    identity: String,
    #[serde(default)]
    issuer: String,
    trust_root: Option<String>,
}

impl Fixture {
    pub fn subject(&self) -> Digest {
        self.subject.parse().expect("the fixture's subject")
    }

    /// The verdict under its own policy.
    pub fn verdict(&self) -> Verdict {
        verify(policy(&self.policy), &self.subject(), &alone(self.candidate.candidate()))
    }
}

impl Parts {
    pub fn candidate(&self) -> Candidate {
        if self.bundle.is_empty() {
            let payload = Bytes::from(self.payload.clone());
            Candidate::Simple { payload, annotations: self.annotations.clone() }
        } else {
            Candidate::Bundle(Bytes::from(self.bundle.clone()))
        }
    }
}

pub fn alone(candidate: Candidate) -> Gathered {
    let mut gathered = Gathered::default();
    gathered.add(candidate);
    gathered
}

pub fn is_verified(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Verified { .. })
}

pub fn text(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/signatures", name].iter().collect();
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn fixture(name: &str) -> &'static Fixture {
    FIXTURES.get(name).unwrap_or_else(|| panic!("no fixture {name}"))
}

pub fn fixtures() -> impl Iterator<Item = &'static Fixture> {
    FIXTURES.values()
}

pub fn policy(name: &str) -> &'static Policy {
    POLICIES.get(name).unwrap_or_else(|| panic!("no policy {name}"))
}

pub fn key(name: &str) -> String {
    WRITTEN.policies.get(name).expect("a policy of this name").key.clone()
}

pub fn trust_root(name: &str) -> Vec<u8> {
    serde_json::to_vec(WRITTEN.trust_roots.get(name).expect("a trust root of this name")).expect("JSON")
}

static FIXTURES: LazyLock<BTreeMap<String, Fixture>> = LazyLock::new(|| {
    let names: Vec<String> =
        text("mutations.txt").lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect();
    let read = |name: String| {
        let fixture: Fixture = serde_json::from_str(&text(&format!("{name}.json"))).expect("a fixture");
        assert_eq!(fixture.name, name);
        (name, fixture)
    };
    names.into_iter().map(read).collect()
});

static WRITTEN: LazyLock<Written> =
    LazyLock::new(|| serde_json::from_str(&text("policies.json")).expect("the policies"));

static POLICIES: LazyLock<BTreeMap<String, Policy>> = LazyLock::new(|| {
    let read = |(name, written): (&String, &WrittenPolicy)| {
        let root = written.trust_root.as_ref().map(|name| TrustRoot::parse(&trust_root(name)).expect("a trust root"));
        let policy = if written.key.is_empty() {
            let identity = Identity { identity: written.identity.clone(), issuer: written.issuer.clone() };
            Policy::by_identities(vec![identity], root.expect("identities have a trust root"))
        } else {
            Policy::by_keys(&[&written.key], root)
        };
        (name.clone(), policy.expect("a policy"))
    };
    WRITTEN.policies.iter().map(read).collect()
});
