//! The EndpointSlice controller: the addresses of the pods behind a Service, and which of them take traffic.
//!
//! Nothing that is run by the thousand reads slices, so the controller can be left out ([`Settings::endpoints`]); it has its
//! own draws, so that the others do the same with it and without it.
//!
//! [`Settings::endpoints`]: super::Settings::endpoints

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DeleteParams;
use serde_json::{Map, Value, json};

use super::json::{is_true, list, name, number, terminating, text, uid};
use super::queue::{Event, Key};
use super::state::State;

const USER: &str = "endpointslice-controller";
const SLICES: &str = "endpointslices.discovery.k8s.io";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// One slice as it should be: pods that serve the same numbers.
struct Wanted {
    ports: Value,
    endpoints: Vec<Value>,
}

impl State {
    /// The services of a namespace may have other endpoints now.
    pub(super) fn look_at_services(&mut self, namespace: &str) {
        if !self.endpoints {
            return;
        }
        for service in self.api.list_values("services", namespace) {
            if service.pointer("/spec/selector").is_some_and(Value::is_object) {
                self.look_at_service(Key::new(namespace, name(&service)));
            }
        }
    }

    pub(super) fn look_at_service(&mut self, key: Key) {
        if self.endpoints {
            let wait = self.draws.endpoints.between(Duration::from_millis(5), Duration::from_millis(200));
            self.queue.push(self.now() + wait, Event::Endpoints(key));
        }
    }

    pub(super) fn sync_endpoints(&mut self, key: &Key) {
        // The slices of a service that is gone go with it, by their owner references.
        let Some(service) = self.api.get_value("services", &key.namespace, &key.name) else { return };
        let Some(selector) = service.pointer("/spec/selector").and_then(Value::as_object) else { return };
        if terminating(&service) || text(&service, "/spec/type") == "ExternalName" {
            return;
        }
        let wanted = self.wanted_slices(&service, selector);
        let mut present: Vec<_> = self
            .api
            .list_values(SLICES, &key.namespace)
            .into_iter()
            .filter(|slice| {
                let label = |key: &str| slice["metadata"]["labels"][key].as_str();
                label(SERVICE_NAME) == Some(key.name.as_str())
                    && label(MANAGED_BY) == Some(MANAGER)
                    && !terminating(slice)
            })
            .collect();
        let labels = labels(&service);
        // Slices that have the right ports are kept for them; only then is any other slice made over.
        let mut homeless = Vec::new();
        for slice in wanted {
            match present.iter().position(|present| same_ports(&present["ports"], &slice.ports)) {
                Some(place) => {
                    let present = present.remove(place);
                    self.write_slice(&key.namespace, &present, &slice, &labels);
                }
                None => homeless.push(slice),
            }
        }
        for slice in homeless {
            match present.pop() {
                Some(present) => self.write_slice(&key.namespace, &present, &slice, &labels),
                None => self.create_slice(&service, &slice, &labels),
            }
        }
        for slice in present {
            // A slice that is gone already needs no deleting.
            let _ = self.api.delete::<EndpointSlice>(USER, &key.namespace, name(&slice), &DeleteParams::default());
        }
    }

    fn wanted_slices(&self, service: &Value, selector: &Map<String, Value>) -> Vec<Wanted> {
        let mut by_ports: BTreeMap<String, Wanted> = BTreeMap::new();
        for pod in self.api.list_values("pods", text(service, "/metadata/namespace")) {
            let labels = &pod["metadata"]["labels"];
            let selected = selector.iter().all(|(key, value)| labels.get(key) == Some(value));
            let over = matches!(text(&pod, "/status/phase"), "Succeeded" | "Failed");
            if !selected || over || text(&pod, "/status/podIP").is_empty() {
                continue;
            }
            let ports = ports_of(service, &pod);
            let place = by_ports.entry(ports.to_string()).or_insert(Wanted { ports, endpoints: Vec::new() });
            place.endpoints.push(self.endpoint_of(service, &pod));
        }
        if by_ports.is_empty() {
            // A service without endpoints has an empty slice, which tells that somebody looked.
            return vec![Wanted { ports: json!([]), endpoints: Vec::new() }];
        }
        by_ports.into_values().collect()
    }

    fn endpoint_of(&self, service: &Value, pod: &Value) -> Value {
        let (serving, leaving) = (is_true(pod, "Ready"), terminating(pod));
        let publishes_all = service.pointer("/spec/publishNotReadyAddresses") == Some(&Value::Bool(true));
        let node = text(pod, "/spec/nodeName");
        let mut endpoint = json!({
            "addresses": [text(pod, "/status/podIP")],
            "conditions": {"ready": publishes_all || (serving && !leaving), "serving": serving, "terminating": leaving},
            "nodeName": node,
            "targetRef": {
                "kind": "Pod", "namespace": text(pod, "/metadata/namespace"), "name": name(pod), "uid": uid(pod),
            },
        });
        let hostname = text(pod, "/spec/hostname");
        if !hostname.is_empty() && text(pod, "/spec/subdomain") == name(service) {
            endpoint["hostname"] = json!(hostname);
        }
        let zone = self
            .api
            .get_value("nodes", "", node)
            .map(|node| node["metadata"]["labels"]["topology.kubernetes.io/zone"].clone());
        if let Some(Value::String(zone)) = zone {
            endpoint["zone"] = json!(zone);
        }
        endpoint
    }

    fn write_slice(&mut self, namespace: &str, present: &Value, wanted: &Wanted, labels: &Value) {
        let same = list(present, "/endpoints") == wanted.endpoints
            && same_ports(&present["ports"], &wanted.ports)
            && present["metadata"]["labels"] == *labels;
        if !same {
            let patch = json!({
                "metadata": {"labels": labels}, "endpoints": wanted.endpoints, "ports": wanted.ports,
            });
            // A slice that is gone is made anew at the next look.
            let _ = self.api.merge::<EndpointSlice>(USER, namespace, name(present), &patch);
        }
    }

    fn create_slice(&mut self, service: &Value, wanted: &Wanted, labels: &Value) {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": format!("{}-", name(service)),
                "namespace": text(service, "/metadata/namespace"),
                "labels": labels,
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": name(service), "uid": uid(service),
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "addressType": "IPv4",
            "endpoints": wanted.endpoints,
            "ports": wanted.ports,
        });
        if let Err(why) = self.api.create_value(USER, slice) {
            tracing::debug!(service = name(service), %why, "a slice could not be made");
        }
    }
}

fn same_ports(one: &Value, other: &Value) -> bool {
    let none = Vec::new();
    one.as_array().unwrap_or(&none) == other.as_array().unwrap_or(&none)
}

fn labels(service: &Value) -> Value {
    let mut labels = service["metadata"]["labels"].clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[SERVICE_NAME] = json!(name(service));
    labels[MANAGED_BY] = json!(MANAGER);
    if text(service, "/spec/clusterIP") == "None" {
        labels[HEADLESS] = json!("");
    }
    labels
}

/// The service's ports as this pod has them; a port that the pod doesn't name is left out.
fn ports_of(service: &Value, pod: &Value) -> Value {
    let number_of = |port: &Value| match port["targetPort"].as_str() {
        Some(wanted) => list(pod, "/spec/containers")
            .iter()
            .flat_map(|container| list(container, "/ports"))
            .find(|declared| text(declared, "/name") == wanted && declared["protocol"] == port["protocol"])
            .and_then(|declared| number(declared, "/containerPort")),
        None => port["targetPort"].as_i64(),
    };
    list(service, "/spec/ports")
        .iter()
        .filter_map(|port| {
            Some(json!({"name": text(port, "/name"), "port": number_of(port)?, "protocol": text(port, "/protocol")}))
        })
        .collect()
}
