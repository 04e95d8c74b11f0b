//! Services.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata::{LABEL, is_label};
use super::super::object;
use super::super::store::Store;
use super::list_mut;

/// The range that addresses are drawn from, as messages name it.
const RANGE: &str = "10.96.0.0/16";
/// Where the ports of nodes begin, and how many there are.
const NODE_PORTS: (u64, u64) = (30_000, 2_768);
const HEADLESS: &str = "None";

pub(super) fn default(service: &mut Map<String, Value>) {
    let spec = object::child(service, "spec");
    object::default(spec, "sessionAffinity", json!("None"));
    object::default(spec, "type", json!("ClusterIP"));
    if is(spec, "sessionAffinity", "ClientIP") {
        object::default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10_800}}));
    }
    for port in list_mut(spec, "ports") {
        object::default(port, "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        object::default(port, "targetPort", number);
    }
    if is(spec, "type", "ExternalName") {
        return;
    }
    object::default(spec, "internalTrafficPolicy", json!("Cluster"));
    if is(spec, "type", "NodePort") || is(spec, "type", "LoadBalancer") {
        object::default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if is(spec, "type", "LoadBalancer") {
        object::default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    // Without a selector nobody knows of which family the endpoints of a headless service will be.
    let both = is(spec, "clusterIP", HEADLESS) && spec.get("selector").is_none_or(Value::is_null);
    object::default(spec, "ipFamilies", if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    object::default(spec, "ipFamilyPolicy", json!(if both { "RequireDualStack" } else { "SingleStack" }));
}

fn is(spec: &Map<String, Value>, key: &str, value: &str) -> bool {
    spec.get(key).and_then(Value::as_str) == Some(value)
}

/// Gives the service its address and its ports on nodes, from ranges that no other service draws from.
pub(super) fn prepare_create(store: &mut Store, service: &mut Value) {
    service["status"] = json!({"loadBalancer": {}});
    let spec = object::child(object::as_map(service), "spec");
    if is(spec, "type", "ExternalName") {
        return;
    }
    let given = spec.get("clusterIP").and_then(Value::as_str).unwrap_or("").to_owned();
    let address = if given.is_empty() {
        let count = store.count();
        format!("10.96.{}.{}", count / 250 % 250 + 1, count % 250 + 1)
    } else {
        given
    };
    spec.insert("clusterIPs".to_owned(), json!([address]));
    spec.insert("clusterIP".to_owned(), json!(address));
    if is(spec, "type", "NodePort") || is(spec, "type", "LoadBalancer") {
        for port in list_mut(spec, "ports") {
            let (first, count) = NODE_PORTS;
            let number = first + store.count() % count;
            object::default(port, "nodePort", json!(number));
        }
    }
}

/// Keeps what the server gave, where a writer leaves it out.
pub(super) fn prepare_update(service: &mut Value, before: &Value) {
    let spec = object::child(object::as_map(service), "spec");
    if spec.get("type") != object::at(before, &["spec", "type"]) {
        return;
    }
    for key in ["clusterIP", "clusterIPs"] {
        if let Some(old) = object::at(before, &["spec", key]) {
            object::default(spec, key, old.clone());
        }
    }
    let ports = object::at(before, &["spec", "ports"]).and_then(Value::as_array).cloned().unwrap_or_default();
    for port in list_mut(spec, "ports") {
        let same = |old: &&Value| old.get("port") == port.get("port") && old.get("protocol") == port.get("protocol");
        if let Some(number) = ports.iter().find(same).and_then(|old| old.get("nodePort")) {
            object::default(port, "nodePort", number.clone());
        }
    }
}

pub(super) fn validate(service: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |key: &str| object::text(service, &["spec", key]);
    let kind = text("type");
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let headless = text("clusterIP") == HEADLESS;
    let ports = object::at(service, &["spec", "ports"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if kind == "ExternalName" && text("externalName").is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    errors.extend(validate_ports(ports));
    if !matches!(text("sessionAffinity"), "None" | "ClientIP") {
        let shown = json!(text("sessionAffinity"));
        errors.push(FieldError::not_supported("spec.sessionAffinity", shown, &["ClientIP", "None"]));
    }
    if !types.contains(&kind) {
        errors.push(FieldError::not_supported("spec.type", json!(kind), &types));
    }
    if headless && matches!(kind, "NodePort" | "LoadBalancer") {
        let why = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid("spec.clusterIPs[0]", HEADLESS, why));
    }
    errors.extend(validate_address(service, before));
    errors
}

fn validate_address(service: &Value, before: Option<&Value>) -> Option<FieldError> {
    let address = object::text(service, &["spec", "clusterIP"]);
    let old = before.map(|before| object::text(before, &["spec", "clusterIP"])).filter(|old| !old.is_empty());
    if let Some(old) = old {
        let shown = object::at(service, &["spec", "clusterIPs"]).cloned().unwrap_or_default();
        let kept = address == old || object::text(service, &["spec", "type"]) == "ExternalName";
        return (!kept).then(|| FieldError::invalid("spec.clusterIPs[0]", shown, "may not change once set"));
    }
    if matches!(address, "" | HEADLESS) {
        return None;
    }
    match address.parse::<std::net::IpAddr>() {
        Err(_) => {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            Some(FieldError::invalid("spec.clusterIPs[0]", address, why))
        }
        Ok(_) if address.starts_with("10.96.") => None,
        Ok(_) => {
            let why = format!(
                "failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of valid \
                 IPs is {RANGE}"
            );
            Some(FieldError::invalid("spec.clusterIPs", json!([address]), why))
        }
    }
}

fn validate_ports(ports: &[Value]) -> Vec<FieldError> {
    const IN_RANGE: &str = "must be between 1 and 65535, inclusive";
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let in_range = |number: i64| (1..=65_535).contains(&number);
    for (index, port) in ports.iter().enumerate() {
        let place = format!("spec.ports[{index}]");
        let name = object::text(port, &["name"]);
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(format!("{place}.name"), ""));
        } else if !name.is_empty() {
            if !is_label(name) {
                errors.push(FieldError::invalid(format!("{place}.name"), name, LABEL));
            }
            if names.contains(&name) {
                errors.push(FieldError::duplicate(format!("{place}.name"), json!(name)));
            }
            names.push(name);
        }
        let number = object::integer(port, &["port"]).unwrap_or(0);
        if !in_range(number) {
            errors.push(FieldError::invalid(format!("{place}.port"), number, IN_RANGE));
        }
        let protocol = object::text(port, &["protocol"]);
        let protocols = ["SCTP", "TCP", "UDP"];
        if !protocols.contains(&protocol) {
            errors.push(FieldError::not_supported(format!("{place}.protocol"), json!(protocol), &protocols));
        }
        if let Some(target) = object::integer(port, &["targetPort"]).filter(|target| !in_range(*target)) {
            errors.push(FieldError::invalid(format!("{place}.targetPort"), target, IN_RANGE));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
    fn problems(spec: Value) -> String {
        let mut service = json!({"metadata": {"name": "x"}, "spec": spec});
        default(object::as_map(&mut service));
        validate(&service, None).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    // What a real server said to the same services.
    #[rstest]
    #[case(json!({"selector": {"a": "b"}}), "spec.ports: Required value")]
    #[case(json!({"clusterIP": "None"}), "")]
    #[case(json!({"ports": [{"port": 80}, {"port": 81}]}), "spec.ports[0].name: Required value; spec.ports[1].name: Required value")]
    #[case(json!({"type": "ExternalName"}), "spec.externalName: Required value")]
    #[case(
        json!({"type": "Foo", "ports": [{"port": 80}]}),
        "spec.type: Unsupported value: \"Foo\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\""
    )]
    #[case(
        json!({"clusterIP": "None", "type": "NodePort", "ports": [{"port": 80}]}),
        "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"
    )]
    #[case(
        json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]}),
        "spec.ports[1].name: Duplicate value: \"a\""
    )]
    #[case(
        json!({"ports": [{"port": 0, "protocol": "X"}]}),
        "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive; \
         spec.ports[0].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"; \
         spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"
    )]
    fn a_service_that_cannot_work_is_refused(#[case] spec: Value, #[case] message: &str) {
        assert_eq!(problems(spec), message);
    }

    #[test]
    fn an_update_keeps_the_address_that_it_leaves_out() {
        let before = json!({"spec": {"type": "ClusterIP", "clusterIP": "10.96.1.2", "clusterIPs": ["10.96.1.2"]}});
        let mut after = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
        prepare_update(&mut after, &before);
        assert_eq!(after["spec"]["clusterIP"], "10.96.1.2");
        assert_eq!(after["spec"]["clusterIPs"], json!(["10.96.1.2"]));
    }
}
