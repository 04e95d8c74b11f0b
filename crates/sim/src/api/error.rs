//! The answers that say no: one constructor per reason, worded as a Kubernetes API server words them.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails, StatusSummary};
use serde_json::{Value, json};

/// What every fallible step of a request returns.
pub(crate) type Answer<T> = Result<T, Box<Status>>;

/// A group with a plural name or a kind, printed as `statefulsets.apps` and for the core group as `pods`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) group: &'a str,
    pub(crate) what: &'a str,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(self.what) } else { write!(f, "{}.{}", self.what, self.group) }
    }
}

/// Why one field was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Required,
    Invalid,
    TypeInvalid,
    Forbidden,
    NotSupported,
    Duplicate,
    TooLong,
    TooMany,
    NotFound,
}

/// One refused field of an object.
#[derive(Clone, Debug)]
pub(crate) struct FieldError {
    fault: Fault,
    field: String,
    value: Option<Value>,
    detail: String,
}

impl FieldError {
    pub(crate) fn new(fault: Fault, field: impl Into<String>, value: Value, detail: impl Into<String>) -> Self {
        Self { fault, field: field.into(), value: Some(value), detail: detail.into() }
    }

    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { fault: Fault::Required, field: field.into(), value: None, detail: detail.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { fault: Fault::Forbidden, field: field.into(), value: None, detail: detail.into() }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Fault::Invalid, field, value.into(), detail)
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: Value) -> Self {
        Self::new(Fault::Duplicate, field, value, "")
    }

    pub(crate) fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Fault::NotFound, field, value.into(), "")
    }

    pub(crate) fn too_long(field: impl Into<String>, bytes: u64) -> Self {
        let detail = format!("may not be more than {bytes} bytes");
        Self { fault: Fault::TooLong, field: field.into(), value: None, detail }
    }

    pub(crate) fn too_many(field: impl Into<String>, actual: u64, limit: u64) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        Self::new(Fault::TooMany, field, json!(actual), format!("must have at most {limit} {items}"))
    }

    pub(crate) fn not_supported(field: impl Into<String>, value: Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        Self::new(Fault::NotSupported, field, value, detail)
    }

    /// The same, with its field further down.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self { field: format!("{path}{}", self.field), ..self.clone() }
    }

    /// Whether rules that were written for sound objects can't be run on one with this fault.
    pub(crate) fn blocks_rules(&self) -> bool {
        match self.fault {
            Fault::Required | Fault::TypeInvalid | Fault::NotSupported | Fault::TooLong | Fault::TooMany => true,
            Fault::Invalid | Fault::Forbidden | Fault::Duplicate | Fault::NotFound => false,
        }
    }

    /// The message without the field's name.
    fn body(&self) -> String {
        let head = match self.fault {
            Fault::Required => "Required value",
            Fault::Invalid | Fault::TypeInvalid => "Invalid value",
            Fault::Forbidden => "Forbidden",
            Fault::NotSupported => "Unsupported value",
            Fault::Duplicate => "Duplicate value",
            Fault::TooLong => "Too long",
            Fault::TooMany => "Too many",
            Fault::NotFound => "Not found",
        };
        let value = self.value.as_ref().map(|value| format!(": {value}")).unwrap_or_default();
        let detail = if self.detail.is_empty() { String::new() } else { format!(": {}", self.detail) };
        format!("{head}{value}{detail}")
    }

    fn cause(&self) -> StatusCause {
        let reason = match self.fault {
            Fault::Required => "FieldValueRequired",
            Fault::Invalid => "FieldValueInvalid",
            Fault::TypeInvalid => "FieldValueTypeInvalid",
            Fault::Forbidden => "FieldValueForbidden",
            Fault::NotSupported => "FieldValueNotSupported",
            Fault::Duplicate => "FieldValueDuplicate",
            Fault::TooLong => "FieldValueTooLong",
            Fault::TooMany => "FieldValueTooMany",
            Fault::NotFound => "FieldValueNotFound",
        };
        StatusCause { reason: reason.to_owned(), message: self.body(), field: self.field.clone() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

fn details(named: Named<'_>, name: &str) -> StatusDetails {
    StatusDetails {
        name: name.to_owned(),
        group: named.group.to_owned(),
        kind: named.what.to_owned(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

fn failure(code: u16, reason: &str, message: String, details: Option<StatusDetails>) -> Box<Status> {
    Box::new(Status {
        status: Some(StatusSummary::Failure),
        code,
        message,
        metadata: None,
        reason: reason.to_owned(),
        details,
    })
}

pub(crate) fn not_found(resource: Named<'_>, name: &str) -> Box<Status> {
    failure(404, "NotFound", format!("{resource} {name:?} not found"), Some(details(resource, name)))
}

pub(crate) fn already_exists(resource: Named<'_>, name: &str) -> Box<Status> {
    failure(409, "AlreadyExists", format!("{resource} {name:?} already exists"), Some(details(resource, name)))
}

pub(crate) fn conflict(resource: Named<'_>, name: &str, why: &str) -> Box<Status> {
    let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
    failure(409, "Conflict", message, Some(details(resource, name)))
}

/// The object changed since the caller read it.
pub(crate) fn modified(resource: Named<'_>, name: &str) -> Box<Status> {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, why)
}

pub(crate) fn invalid(kind: Named<'_>, name: &str, errors: &[FieldError]) -> Box<Status> {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let list = if let [only] = texts.as_slice() { only.clone() } else { format!("[{}]", texts.join(", ")) };
    let mut details = details(kind, name);
    details.causes = errors.iter().map(FieldError::cause).collect();
    failure(422, "Invalid", format!("{kind} {name:?} is invalid: {list}"), Some(details))
}

/// A JSON patch whose operations can't be applied, a failed `test` among them.
pub(crate) fn patch_rejected() -> Box<Status> {
    let message = "the server rejected our request due to an error in our request".to_owned();
    failure(422, "Invalid", message, Some(details(Named { group: "", what: "" }, "")))
}

/// A patch that makes something of the object that it can't be read as any more.
pub(crate) fn undecodable_patch(patched: &str, why: &str) -> Box<Status> {
    let why = FieldError::invalid("patch", patched, why);
    invalid(Named { group: "", what: "" }, "", &[why])
}

pub(crate) fn bad_request(message: impl Into<String>) -> Box<Status> {
    failure(400, "BadRequest", message.into(), None)
}

pub(crate) fn forbidden(resource: Named<'_>, name: &str, why: &str) -> Box<Status> {
    let message = if name.is_empty() {
        format!("{resource} is forbidden: {why}")
    } else {
        format!("{resource} {name:?} is forbidden: {why}")
    };
    failure(403, "Forbidden", message, Some(details(resource, name)))
}

/// A ValidatingAdmissionPolicy says no: worded as what is forbidden, with the code of what is invalid.
pub(crate) fn denied(resource: Named<'_>, name: &str, why: &str) -> Box<Status> {
    let why = format!("ValidatingAdmissionPolicy 'frozen-fields' with binding 'frozen-fields' denied request: {why}");
    let mut status = forbidden(resource, name, &why);
    (status.code, status.reason) = (422, "Invalid".to_owned());
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause { message: why, reason: String::new(), field: String::new() });
    }
    status
}

/// Nothing new may be made in a namespace that goes.
pub(crate) fn terminating(resource: Named<'_>, name: &str, namespace: &str) -> Box<Status> {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = forbidden(resource, name, &why);
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
    }
    status
}

pub(crate) fn too_many_requests(message: &str, retry_after: u32, cause: StatusCause) -> Box<Status> {
    let mut details = details(Named { group: "", what: "" }, "");
    details.retry_after_seconds = retry_after;
    details.causes.push(cause);
    failure(429, "TooManyRequests", message.to_owned(), Some(details))
}

/// A history that is gone; `resume` is a token that goes on with what there is now.
pub(crate) fn expired(message: impl Into<String>, resume: Option<String>) -> Box<Status> {
    let mut status = failure(410, "Expired", message.into(), None);
    status.metadata = resume.map(|token| ListMeta { continue_: Some(token), ..ListMeta::default() });
    status
}

/// A revision that this server has not reached.
pub(crate) fn too_large_revision(asked: u64, current: u64) -> Box<Status> {
    let message = format!("Too large resource version: {asked}, current: {current}");
    let mut details = details(Named { group: "", what: "" }, "");
    details.retry_after_seconds = 1;
    details.causes.push(StatusCause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    });
    failure(504, "Timeout", format!("Timeout: {message}"), Some(details))
}

pub(crate) fn method_not_supported(resource: Named<'_>, verb: &str) -> Box<Status> {
    let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
    failure(405, "MethodNotAllowed", message, Some(details(resource, "")))
}

/// Nothing that the caller would understand can be said about it.
pub(crate) fn not_acceptable(message: &str, custom: bool) -> Box<Status> {
    let details = (!custom).then(|| details(Named { group: "", what: "" }, ""));
    failure(406, "NotAcceptable", message.to_owned(), details)
}

/// There is nothing at this address.
pub(crate) fn no_such_resource() -> Box<Status> {
    let message = "the server could not find the requested resource".to_owned();
    failure(404, "NotFound", message, Some(details(Named { group: "", what: "" }, "")))
}

/// There is something at this address, but not for this method.
pub(crate) fn no_such_method() -> Box<Status> {
    let message = "the server does not allow this method on the requested resource".to_owned();
    failure(405, "MethodNotAllowed", message, Some(details(Named { group: "", what: "" }, "")))
}

pub(crate) fn not_allowed(message: &str) -> Box<Status> {
    failure(405, "MethodNotAllowed", message.to_owned(), None)
}

pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Box<Status> {
    let list = accepted.join(", ");
    let message = format!("the body of the request was in an unknown format - accepted media types include: {list}");
    failure(415, "UnsupportedMediaType", message, None)
}

/// The media type is none that any resource of this server takes.
pub(crate) fn unsupported_media() -> Box<Status> {
    let message = "415: Unsupported Media Type".to_owned();
    failure(415, "UnsupportedMediaType", message, Some(details(Named { group: "", what: "" }, "")))
}

/// An apply would change what others manage.
pub(crate) fn apply_conflict(message: String, causes: Vec<StatusCause>) -> Box<Status> {
    let details = StatusDetails { causes, ..details(Named { group: "", what: "" }, "") };
    failure(409, "Conflict", message, Some(details))
}

/// An answer in the form that was asked for can't be given.
pub(crate) fn no_such_form(message: &str) -> Box<Status> {
    failure(406, "NotAcceptable", message.to_owned(), None)
}

pub(crate) fn not_implemented(message: &str) -> Box<Status> {
    failure(501, "NotImplemented", message.to_owned(), None)
}

/// A failure that carries no machine-readable reason.
pub(crate) fn unknown(code: u16, message: &str) -> Box<Status> {
    failure(code, "", message.to_owned(), None)
}

/// The body that goes over the wire.
pub(crate) fn to_value(status: &Status) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_else(|_| json!({}));
    if let Some(map) = value.as_object_mut() {
        map.insert("kind".to_owned(), json!("Status"));
        map.insert("apiVersion".to_owned(), json!("v1"));
        map.entry("metadata").or_insert_with(|| json!({}));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_object_lists_each_field_once_and_every_cause() {
        let errors = [
            FieldError::required("spec.selector", ""),
            FieldError::invalid("spec.replicas", -1, "must be greater than or equal to 0"),
        ];
        let status = invalid(Named { group: "apps", what: "StatefulSet" }, "web", &errors);
        assert_eq!(
            status.message,
            "StatefulSet.apps \"web\" is invalid: [spec.selector: Required value, \
             spec.replicas: Invalid value: -1: must be greater than or equal to 0]"
        );
        let causes = status.details.map(|details| details.causes).unwrap_or_default();
        assert_eq!(causes.len(), 2);
        assert_eq!(causes[1].reason, "FieldValueInvalid");
    }

    #[test]
    fn a_core_resource_is_named_without_a_group() {
        let status = not_found(Named { group: "", what: "pods" }, "a");
        assert_eq!(status.message, "pods \"a\" not found");
    }
}
