//! What an image is for, and what a node can run.

use std::fmt;

use serde::Deserialize;
use windlass_plan::bug::{self, Bug};

/// An operating system and a processor.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub struct Platform {
    /// The operating system, as Kubernetes names it: `linux`.
    pub os: String,
    /// The processor, as Kubernetes names it: `amd64`.
    pub architecture: String,
    /// The generation of the processor, such as `v7`. Nodes don't say theirs.
    #[serde(default)]
    pub variant: Option<String>,
}

impl Platform {
    /// A platform as nodes tell it, in their labels.
    pub fn new(os: &str, architecture: &str) -> Self {
        Self { os: os.to_owned(), architecture: architecture.to_owned(), variant: None }
    }

    /// Whether a node of this platform can run what is for `offered`, by the rules that containerd goes by.
    pub fn can_run(&self, offered: &Self) -> bool {
        let (node, image) = (self.usual(), offered.usual());
        let is_known = |text: &str| !text.is_empty() && text != "unknown";
        if !is_known(&image.os) || !is_known(&image.architecture) {
            return false;
        }
        if node.os != image.os || node.architecture != image.architecture {
            return false;
        }
        match (generation(node.variant.as_deref()), generation(image.variant.as_deref())) {
            // Each generation runs what was built for those before it.
            (Some(node), Some(image)) if matches!(self.usual().architecture.as_str(), "amd64" | "arm") => node >= image,
            (_, _) => node.variant == image.variant,
        }
    }

    /// The same platform in the words that are usual, with the generation that is meant where none is written.
    fn usual(&self) -> Self {
        let architecture = match self.architecture.to_ascii_lowercase().as_str() {
            "x86_64" | "x86-64" => "amd64".to_owned(),
            "aarch64" => "arm64".to_owned(),
            "armhf" => "arm".to_owned(),
            other => other.to_owned(),
        };
        let variant = self.variant.as_deref().filter(|variant| !variant.is_empty()).map(str::to_ascii_lowercase);
        let variant = variant.or_else(|| match architecture.as_str() {
            "amd64" => Some("v1".to_owned()),
            "arm" => Some("v7".to_owned()),
            "arm64" => Some("v8".to_owned()),
            _ => None,
        });
        Self { os: self.os.to_ascii_lowercase(), architecture, variant }
    }
}

fn generation(variant: Option<&str>) -> Option<u32> {
    variant?.strip_prefix('v')?.parse().ok()
}

/// Those of `nodes` that have nothing to run.
pub(super) fn missing(nodes: &[Platform], has: impl Fn(&Platform) -> bool) -> Vec<&Platform> {
    if bug::active(Bug::PlatformNotChecked) {
        return Vec::new();
    }
    nodes.iter().filter(|node| !has(node)).collect()
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn platform(text: &str) -> Platform {
        let mut parts = text.split('/').map(str::to_owned);
        let mut next = || parts.next();
        Platform { os: next().unwrap(), architecture: next().unwrap(), variant: next() }
    }

    #[rstest]
    #[case::the_same("linux/amd64", "linux/amd64", true)]
    #[case::another_processor("linux/amd64", "linux/arm64", false)]
    #[case::another_system("linux/amd64", "windows/amd64", false)]
    #[case::another_word("linux/amd64", "linux/x86_64", true)]
    #[case::the_first_generation_is_what_everybody_has("linux/amd64", "linux/amd64/v1", true)]
    #[case::a_generation_that_the_node_may_not_have("linux/amd64", "linux/amd64/v3", false)]
    #[case::a_generation_that_the_node_has("linux/amd64/v3", "linux/amd64/v2", true)]
    #[case::arm64_is_v8("linux/arm64", "linux/arm64/v8", true)]
    #[case::arm64_of_another_kind("linux/arm64", "linux/arm64/v9", false)]
    #[case::older_arm("linux/arm", "linux/arm/v6", true)]
    #[case::newer_arm("linux/arm/v6", "linux/arm/v7", false)]
    #[case::an_attestation("linux/amd64", "unknown/unknown", false)]
    #[case::nobody_is_unknown("unknown/unknown", "unknown/unknown", false)]
    #[case::nothing_said("linux/", "linux/", false)]
    #[case::no_number("linux/arm/vx", "linux/arm/vx", true)]
    fn a_node_runs_what_is_for_it(#[case] node: &str, #[case] image: &str, #[case] expected: bool) {
        assert_eq!(platform(node).can_run(&platform(image)), expected);
    }
}
