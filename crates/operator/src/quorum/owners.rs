//! Who owns which fields of a StatefulSet, from its `metadata.managedFields` (H39). Pure.

use std::collections::BTreeSet;

use k8s_openapi::{api::apps::v1::StatefulSet, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry};
use serde_json::Value;
use windlass_api::QuorumCluster;
use windlass_plan::{
    Fact,
    rolling::known::owners::{Field, Operation, Owner, Owners},
};

/// Who owns what of it that an upgrade writes or counts on. One entry that can't be read makes all of it unknown: it may be the one that matters.
/// No entry at all is no account, and nobody claims anything then.
pub fn read(resource: &QuorumCluster, set: &StatefulSet) -> Fact<Owners> {
    let workload = &resource.spec.workload;
    of_containers(&workload.container, &workload.init_containers, set)
}

/// The same for whoever can't tell which container is managed: all but who owns its image.
pub fn of_strategy(set: &StatefulSet) -> Fact<Owners> {
    of_containers("", &[], set)
}

fn of_containers(container: &str, followers: &[String], set: &StatefulSet) -> Fact<Owners> {
    let entries = set.metadata.managed_fields.as_deref().unwrap_or_default();
    let read = entries.iter().map(|entry| owner(entry, container, followers));
    match read.collect::<Result<Vec<Owner>, String>>() {
        Err(why) => Fact::Unknown(why),
        Ok(mut managers) => {
            managers.retain(|owner| !owner.fields.is_empty());
            let references = set.metadata.owner_references.as_deref().unwrap_or_default();
            let controller = references.iter().find(|owner| owner.controller == Some(true));
            let controller = controller.map(|owner| format!("{}/{}", owner.kind, owner.name));
            Fact::Known(Owners { controller, managers })
        }
    }
}

fn owner(entry: &ManagedFieldsEntry, container: &str, followers: &[String]) -> Result<Owner, String> {
    let manager = entry.manager.clone().unwrap_or_default();
    let unreadable = |what: &str| format!("{what} of the entry of manager {manager:?} in metadata.managedFields");
    let operation = match entry.operation.as_deref() {
        Some("Apply") => Operation::Apply,
        Some("Update") => Operation::Update,
        Some(_) | None => return Err(unreadable("the operation")),
    };
    if entry.fields_type.as_deref() != Some("FieldsV1") {
        return Err(unreadable("the type of the fields"));
    }
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0).filter(|fields| fields.is_object());
    let fields = fields.ok_or_else(|| unreadable("the fields"))?;
    Ok(Owner {
        operation,
        scales: entry.subresource.as_deref() == Some("scale"),
        at: entry.time.as_ref().map(|time| time.0),
        fields: owned(&fields["f:spec"], container, followers),
        manager,
    })
}

/// Which fields these are, in the words of `FieldsV1`: a field is `f:NAME`, an element of a list that has a key `k:{"KEY":VALUE}`, and what is
/// owned as a whole has nothing in it.
fn owned(spec: &Value, container: &str, followers: &[String]) -> BTreeSet<Field> {
    let mut fields = BTreeSet::new();
    let pod = &spec["f:template"]["f:spec"];
    let image = |list: &Value, name: &str| {
        let key = format!("k:{}", serde_json::json!({ "name": name }));
        list.get(&key).is_some_and(|container| container.get("f:image").is_some())
    };
    if image(&pod["f:containers"], container) || followers.iter().any(|name| image(&pod["f:initContainers"], name)) {
        fields.insert(Field::Image);
    }
    if let Some(strategy) = spec.get("f:updateStrategy").and_then(Value::as_object) {
        let whole = strategy.is_empty();
        let rolling = strategy.get("f:rollingUpdate").and_then(Value::as_object);
        if whole || rolling.is_some_and(|rolling| rolling.is_empty() || rolling.contains_key("f:partition")) {
            fields.insert(Field::Partition);
        }
        let rest =
            |rolling: &serde_json::Map<String, Value>| rolling.keys().any(|key| key != "f:partition" && key != ".");
        if whole || strategy.contains_key("f:type") || rolling.is_some_and(rest) {
            fields.insert(Field::Strategy);
        }
    }
    if spec.get("f:replicas").is_some() {
        fields.insert(Field::Replicas);
    }
    fields
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_plan::{
        Fact,
        rolling::known::owners::{Field, Operation, Owners},
    };

    use super::read;

    fn seen(metadata: &Value) -> Fact<Owners> {
        let set = json!({"metadata": metadata, "spec": {"selector": {}, "template": {}, "serviceName": "pd"}});
        let resource = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster", "metadata": {"name": "pd"},
            "spec": {
                "workload": {"statefulSet": "pd", "container": "pd", "initContainers": ["prepare"]},
                "system": {"type": "Pd", "port": 2379}, "version": "8.5.3",
            },
        });
        read(&serde_json::from_value(resource).unwrap(), &serde_json::from_value(set).unwrap())
    }

    fn entry(fields: &Value) -> Value {
        json!({"manager": "argocd-controller", "operation": "Apply", "apiVersion": "apps/v1", "time": "2030-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[rstest]
    #[case::the_image(json!({"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"pd\"}": {".": {}, "f:image": {}}}}}}), &[Field::Image])]
    #[case::of_another_container(json!({"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"agent\"}": {"f:image": {}}}}}}), &[])]
    #[case::something_else_of_it(json!({"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"pd\"}": {"f:args": {}}}}}}), &[])]
    #[case::of_one_that_follows(json!({"f:template": {"f:spec": {"f:initContainers": {"k:{\"name\":\"prepare\"}": {"f:image": {}}}}}}), &[Field::Image])]
    #[case::the_partition(json!({"f:updateStrategy": {"f:rollingUpdate": {"f:partition": {}}}}), &[Field::Partition])]
    #[case::its_block(json!({"f:updateStrategy": {"f:rollingUpdate": {}}}), &[Field::Partition])]
    #[case::the_type(json!({"f:updateStrategy": {"f:type": {}}}), &[Field::Strategy])]
    #[case::how_many_at_once(json!({"f:updateStrategy": {"f:rollingUpdate": {".": {}, "f:maxUnavailable": {}}}}), &[Field::Strategy])]
    #[case::all_of_the_strategy(json!({"f:updateStrategy": {}}), &[Field::Partition, Field::Strategy])]
    #[case::replicas(json!({"f:replicas": {}}), &[Field::Replicas])]
    #[case::selectors_never_change(json!({"f:selector": {}, "f:serviceName": {}}), &[])]
    fn what_is_owned(#[case] spec: Value, #[case] fields: &[Field]) {
        let owners = seen(&json!({"managedFields": [entry(&json!({"f:spec": spec}))]})).known().cloned().unwrap();
        let owned: Vec<Field> = owners.managers.iter().flat_map(|owner| owner.fields.iter().copied()).collect();
        assert_eq!(owned, fields);
    }

    #[test]
    fn an_owner_is_known_by_its_name_its_way_and_its_time() {
        let mut scaled = entry(&json!({"f:spec": {"f:replicas": {}}}));
        (scaled["operation"], scaled["subresource"]) = (json!("Update"), json!("scale"));
        let owners = seen(&json!({"managedFields": [scaled]})).known().cloned().unwrap();
        let owner = owners.managers.first().unwrap();
        assert_eq!(
            (owner.manager.as_str(), owner.operation, owner.scales),
            ("argocd-controller", Operation::Update, true)
        );
        assert_eq!(owner.at, Some("2030-01-01T00:00:00Z".parse().unwrap()));
    }

    #[test]
    fn whoever_controls_the_set_is_named() {
        let reference = |controller| json!({"apiVersion": "v1", "kind": "TidbCluster", "name": "basic", "uid": "1", "controller": controller});
        let of =
            |controller: bool| seen(&json!({"ownerReferences": [reference(controller)]})).known().cloned().unwrap();
        assert_eq!(of(true).controller.as_deref(), Some("TidbCluster/basic"));
        assert_eq!(of(false).controller, None);
    }

    #[rstest]
    #[case::no_account(json!([]), true)]
    #[case::a_strange_operation(json!([{"manager": "x", "operation": "Merge", "fieldsType": "FieldsV1", "fieldsV1": {}}]), false)]
    #[case::no_operation(json!([{"manager": "x", "fieldsType": "FieldsV1", "fieldsV1": {}}]), false)]
    #[case::another_format(json!([{"manager": "x", "operation": "Update", "fieldsType": "FieldsV2", "fieldsV1": {}}]), false)]
    #[case::no_fields(json!([{"manager": "x", "operation": "Update", "fieldsType": "FieldsV1"}]), false)]
    #[case::strange_fields(json!([{"manager": "x", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": "all"}]), false)]
    fn what_can_not_be_read_is_unknown(#[case] entries: Value, #[case] known: bool) {
        assert_eq!(seen(&json!({"managedFields": entries})).known().is_some(), known);
    }
}
