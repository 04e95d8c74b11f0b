//! Events (events.k8s.io/v1): one per act and one per change of what is waited for. A lost event is no reason to stop.

use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ObjectMeta, PostParams},
};

use windlass_plan::trouble::without_their_words;

use crate::actor::Actor;

/// The longest note that the API server takes.
const NOTE_LIMIT: usize = 1024;

/// Something worth telling.
pub struct Telling<'a> {
    /// Something is wrong.
    pub warning: bool,
    /// A word for machines.
    pub reason: &'a str,
    /// What was done or is waited for, in a word.
    pub action: &'a str,
    /// A sentence for people.
    pub note: String,
}

/// Tells about a resource.
pub async fn tell<K: Resource<DynamicType = ()>>(actor: Actor<'_>, resource: &K, telling: Telling<'_>) {
    // What belongs to no namespace has its events in this one.
    let namespace = resource.namespace().unwrap_or_else(|| "default".to_owned());
    let now = actor.context.clock.now();
    let Telling { warning, reason, action, note } = telling;
    // Who may read events need not be allowed to read the resource, nor logs; and what belongs to no namespace tells everybody.
    let mut note = without_their_words(&note);
    if note.len() > NOTE_LIMIT {
        let end = (0..=NOTE_LIMIT).rev().find(|end| note.is_char_boundary(*end)).unwrap_or(0);
        note.truncate(end);
    }
    let event = Event {
        // With the dot that names of events usually have here, the API server takes none.
        metadata: ObjectMeta { generate_name: Some(format!("{}-", resource.name_any())), ..ObjectMeta::default() },
        event_time: Some(MicroTime(now)),
        type_: Some(if warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(reason.to_owned()),
        action: Some(action.to_owned()),
        note: Some(note),
        regarding: Some(ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            name: Some(resource.name_any()),
            namespace: resource.namespace(),
            uid: resource.uid(),
            resource_version: resource.resource_version(),
            ..ObjectReference::default()
        }),
        reporting_controller: Some("windlass.dev/operator".to_owned()),
        reporting_instance: Some(actor.context.settings.identity.chars().take(128).collect()),
        ..Event::default()
    };
    let api: Api<Event> = Api::namespaced(actor.context.client.clone(), &namespace);
    let what = format!("events/{namespace}");
    if let Err(error) = actor.write("create", &what, api.create(&PostParams::default(), &event)).await {
        tracing::debug!(error = error.story(), "an event was lost");
    }
}
