//! What is to be planned: a QuorumCluster from a manifest, from the cluster, or one as the manifest would make it.

use std::{io::Read as _, path::Path};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::Value;
use windlass_api::QuorumCluster;
use windlass_operator::{Context, error::Error, live::Read, queue::Key, quorum::observe};

/// Which QuorumCluster, and what shall become of it.
pub struct Wish {
    /// Its name, where there is no manifest.
    pub name: String,
    /// Where it is, or would be.
    pub namespace: String,
    /// What a person is about to apply.
    pub manifest: Option<QuorumCluster>,
}

impl Wish {
    /// The resource as it is, or as it would be with the manifest applied. The inner error is the person's.
    pub async fn resource(self, context: &Context) -> Result<Result<QuorumCluster>, Error> {
        let Self { name, namespace, manifest } = self;
        let name = manifest.as_ref().map_or(name, ResourceExt::name_any);
        let found = observe::resource(context, &Key { namespace: namespace.clone(), name: name.clone() }).await?;
        let found = match found {
            Some(Read::Clear(found)) => Some(*found),
            Some(Read::Odd(hold, _)) => return Ok(Err(anyhow!("QuorumCluster {namespace}/{name}: {hold}"))),
            None => None,
        };
        Ok(match (found, manifest) {
            (Some(found), _) if found.metadata.deletion_timestamp.is_some() => {
                Err(anyhow!("QuorumCluster {namespace}/{name} is being deleted: nothing is upgraded any more"))
            }
            (Some(found), None) => Ok(found),
            (None, None) => Err(anyhow!("there is no QuorumCluster {namespace}/{name}; plan one with --filename")),
            (Some(found), Some(manifest)) => applied(found, manifest),
            (None, Some(mut manifest)) => {
                manifest.metadata.namespace = Some(namespace);
                // It would be younger than all that exist (H40).
                manifest.metadata.creation_timestamp = Some(Time(context.clock.now()));
                manifest.status = None;
                Ok(manifest)
            }
        })
    }
}

/// What exists, with the manifest's spec and annotations.
fn applied(mut found: QuorumCluster, manifest: QuorumCluster) -> Result<QuorumCluster> {
    ensure!(
        found.spec.workload == manifest.spec.workload && found.spec.system.type_ == manifest.spec.system.type_,
        "workload and system.type of QuorumCluster {} can't change: delete it and create another",
        found.name_any()
    );
    found.annotations_mut().extend(manifest.metadata.annotations.unwrap_or_default());
    found.spec = manifest.spec;
    Ok(found)
}

/// The one QuorumCluster in a file.
pub fn manifest(path: &Path) -> Result<QuorumCluster> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    parse(&text.with_context(|| format!("can't read {}", path.display()))?)
        .with_context(|| format!("{} can't be planned", path.display()))
}

fn parse(text: &str) -> Result<QuorumCluster> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let mut ours = documents.into_iter().filter(|document| document["kind"] == "QuorumCluster");
    let (Some(one), None) = (ours.next(), ours.next()) else { bail!("it must hold exactly one QuorumCluster") };
    let resource: QuorumCluster = serde_json::from_value(one.clone())?;
    ensure!(resource.metadata.name.is_some(), "metadata.name is missing");
    if let Some(field) = unknown(&one["spec"], &serde_json::to_value(&resource.spec)?, "spec") {
        bail!("{field} is no field of a QuorumCluster");
    }
    Ok(resource)
}

/// A field that was written and not read: the API server drops such ones, and what was meant would be missing from the plan.
fn unknown(written: &Value, read: &Value, path: &str) -> Option<String> {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => written.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match read.get(name) {
                Some(read) => unknown(value, read, &path),
                None => (!is_empty(value)).then_some(path),
            }
        }),
        (Value::Array(written), Value::Array(read)) => written
            .iter()
            .zip(read)
            .enumerate()
            .find_map(|(index, (written, read))| unknown(written, read, &format!("{path}[{index}]"))),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Where the resource is or would be, by the same rules as kubectl's.
pub fn namespace(flag: Option<&str>, manifest: Option<&QuorumCluster>, default: &str) -> Result<String> {
    let written = manifest.and_then(ResourceExt::namespace);
    match (flag, written) {
        (Some(flag), Some(written)) if flag != written => {
            bail!("the manifest's namespace {written} is not {flag}, which --namespace says")
        }
        (Some(flag), _) => Ok(flag.to_owned()),
        (None, Some(written)) => Ok(written),
        (None, None) => Ok(default.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{applied, namespace, parse};

    const ONE: &str = "apiVersion: windlass.dev/v1alpha1\nkind: QuorumCluster\nmetadata: {name: pd, namespace: tikv}\nspec:\n  workload: {statefulSet: pd, container: pd}\n  system: {type: Pd}\n  version: 8.5.3\n";

    #[test]
    fn a_manifest_holds_exactly_one() {
        let among_others = format!("kind: Namespace\nmetadata: {{name: tikv}}\n---\n{ONE}");
        assert_eq!(parse(&among_others).unwrap().spec.version.as_deref(), Some("8.5.3"));
        for text in ["kind: Namespace\n", &format!("{ONE}---\n{ONE}")] {
            assert!(parse(text).unwrap_err().to_string().contains("exactly one QuorumCluster"));
        }
        let wrong = ONE.replace("8.5.3", "{of: 8}");
        assert!(parse(&wrong).is_err());
        let typo = format!("{ONE}  gates: {{windows: [{{schedule: 0 2 * * *, duration: 1h, zone: UTC}}]}}\n");
        let told = parse(&typo).unwrap_err().to_string();
        assert_eq!(told, "spec.gates.windows[0].zone is no field of a QuorumCluster");
        assert!(parse(&ONE.replace("name: pd, ", "")).unwrap_err().to_string().contains("metadata.name"));
    }

    #[test]
    fn namespaces_must_not_contradict_each_other() {
        let one = parse(ONE).unwrap();
        assert_eq!(namespace(None, Some(&one), "default").unwrap(), "tikv");
        assert_eq!(namespace(Some("tikv"), Some(&one), "default").unwrap(), "tikv");
        assert_eq!(namespace(None, None, "default").unwrap(), "default");
        assert!(namespace(Some("other"), Some(&one), "default").is_err());
    }

    #[test]
    fn a_manifest_can_not_change_what_the_api_server_would_refuse_to_change() {
        let one = parse(ONE).unwrap();
        let other = parse(&ONE.replace("statefulSet: pd", "statefulSet: other")).unwrap();
        assert!(applied(one.clone(), other).is_err());
        let newer = parse(&ONE.replace("8.5.3", "8.5.4")).unwrap();
        assert_eq!(applied(one, newer).unwrap().spec.version.as_deref(), Some("8.5.4"));
    }
}
