//! From a request to an answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use kube::core::Status;
use serde::Serialize;
use serde_json::{Value, json};

use super::delete::{Deleted, Options};
use super::discovery;
use super::error::{self, Answer};
use super::eviction;
use super::form::{Form, Subject};
use super::managed_fields;
use super::openapi;
use super::patch::Kind;
use super::protobuf::{self, Unreadable};
use super::query::{Query, Route, Subresource};
use super::read::Selection;
use super::resource::Rules;
use super::scale;
use super::store::Store;
use super::watch;
use super::write::{Part, Target, Update, Writer, Written};
use super::{Api, Reply};

/// What the server can read and write.
const MEDIA: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// A request with everything read from it that is not in its path.
struct Call<'a> {
    user: &'a str,
    method: &'a Method,
    query: Query,
    /// The query as it was written.
    text: &'a str,
    content_type: &'a str,
    /// The name of a manager of fields that the request does not name.
    agent: String,
    body: &'a Bytes,
    at: Option<u64>,
    form: Form,
}

impl Call<'_> {
    fn writer(&self) -> Writer<'_> {
        let named = &self.query.field_manager;
        Writer {
            user: self.user,
            manager: if named.is_empty() { &self.agent } else { named },
            dry_run: self.query.dry_run,
            unknown_fields: self.query.unknown_fields,
        }
    }

    /// The body of a PATCH.
    fn patch(&self, target: &Target) -> Answer<Update> {
        let kind = Kind::of(&target.resource, self.content_type)?;
        self.query.check_patch(kind)?;
        kind.read(self.body, self.query.force == Some(true), self.query.unknown_fields)
    }

    /// The body as JSON.
    fn object(&self) -> Answer<Value> {
        let media = self.content_type.split(';').next().unwrap_or("").trim();
        if media == protobuf::MEDIA {
            return protobuf::decode(self.body).map_err(|why| match why {
                Unreadable::Kind => error::unsupported_media_type(&["application/json", "application/yaml"]),
                Unreadable::Bytes => error::bad_request("the body of the request is no object in protobuf"),
            });
        }
        if !matches!(media, "" | "application/json") {
            return Err(error::unsupported_media_type(&MEDIA));
        }
        serde_json::from_slice(self.body).map_err(|why| error::bad_request(format!("json parse error: {why}")))
    }

    /// The body as an object of this kind.
    fn object_of(&self, kind: &str, custom: bool) -> Answer<Value> {
        let unrecognized = |why: &str| {
            error::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why}"))
        };
        match self.object() {
            Ok(object @ Value::Object(_)) => Ok(object),
            // The built-in kinds read a null as an object without fields.
            Ok(Value::Null) if !custom => Ok(json!({})),
            Ok(_) => Err(unrecognized("the body is no object")),
            Err(status) if status.code == 400 => Err(unrecognized(&status.message)),
            Err(status) => Err(status),
        }
    }

    fn delete_options(&self) -> Answer<Options> {
        let body = if self.body.is_empty() {
            json!({})
        } else {
            self.object().map_err(|status| {
                // The server takes options that it can't read for its own fault.
                if status.code == 400 {
                    error::unknown(500, &format!("couldn't get version/kind; {}", status.message))
                } else {
                    status
                }
            })?
        };
        if !body.is_object() && !body.is_null() {
            return Err(error::unknown(500, "couldn't get version/kind; json parse error: the body is no object"));
        }
        let mut options = Options::parse(&body)?;
        // A body speaks for itself: the query counts only where there is none.
        if self.body.is_empty() {
            options.grace = self.query.grace;
            options.propagation = self.query.propagation;
            options.dry_run = self.query.dry_run;
        }
        Ok(options)
    }
}

impl Api {
    pub(super) fn answer(&self, user: &str, request: &Request<Bytes>, at: Option<u64>) -> Reply {
        let header = |name: header::HeaderName| {
            request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
        };
        let route = Route::parse(request.uri().path());
        let reads = request.method() == Method::GET;
        let aggregated = header(header::ACCEPT).contains("as=APIGroupDiscoveryList");
        match route {
            Route::Unknown => Reply::Done(page_not_found()),
            Route::Health => Reply::Done(plain(StatusCode::OK, "ok")),
            Route::Version if !reads => Reply::Done(refusal(&error::no_such_method())),
            Route::Version => Reply::Done(json_response(StatusCode::OK, &discovery::version())),
            Route::Documents => Reply::Done(openapi::index(&self.lock())),
            Route::Document(path) => {
                let known = header(header::IF_NONE_MATCH);
                let query = request.uri().query().unwrap_or("");
                Reply::Done(openapi::answer(&self.lock(), &path, query, &known).unwrap_or_else(page_not_found))
            }
            Route::CoreVersions | Route::Groups | Route::Group(_) | Route::Resources { .. } if reads => {
                let store = self.lock();
                Reply::Done(discovery::answer(&store, &route, aggregated).unwrap_or_else(page_not_found))
            }
            Route::CoreVersions | Route::Groups | Route::Group(_) | Route::Resources { .. } => {
                Reply::Done(plain(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed"))
            }
            Route::Objects { group, version, plural, namespace, name, part } => {
                let content_type = header(header::CONTENT_TYPE);
                let mut store = self.lock();
                let found = store.resource_of(&group, &plural);
                let served = found.filter(|resource| resource.version(&version).is_some_and(|version| version.served));
                let Some(resource) = served else {
                    // Groups of its own the server knows; others may be anybody's.
                    let own = super::resource::BUILT_IN.iter().any(|resource| resource.group == group);
                    let answer = if own { refusal(&error::no_such_resource()) } else { page_not_found() };
                    return Reply::Done(answer);
                };
                let target = Target { resource, version, namespace, name };
                let query = match Query::parse(request.method(), request.uri().query().unwrap_or("")) {
                    Ok(query) => query,
                    Err(status) => return Reply::Done(refusal(&status)),
                };
                let accepts = header(header::ACCEPT);
                if let Err(status) = check_accepted(&target, &accepts) {
                    return Reply::Done(refusal(&status));
                }
                let form = match Form::negotiate(&accepts, &query.include_object) {
                    Ok(form) => form,
                    Err(status) => return Reply::Done(refusal(&status)),
                };
                let call = Call {
                    form,
                    user,
                    method: request.method(),
                    query,
                    text: request.uri().query().unwrap_or(""),
                    content_type: &content_type,
                    // Those in the same process send no User-Agent.
                    agent: match request.headers().get(header::USER_AGENT) {
                        Some(_) => managed_fields::name_of_agent(&header(header::USER_AGENT)),
                        None => user.to_owned(),
                    },
                    body: request.body(),
                    at,
                };
                store.warned.clear();
                self.objects(&mut store, &call, &target, part).unwrap_or_else(|status| {
                    let mut response = refusal(&status);
                    warn(&mut response, &store.warned);
                    Reply::Done(response)
                })
            }
        }
    }

    fn objects(&self, store: &mut Store, call: &Call<'_>, target: &Target, part: Option<Subresource>) -> Answer<Reply> {
        let misplaced = target.namespace.is_empty() == target.resource.namespaced;
        let custom = target.resource.rules == Rules::Custom;
        if misplaced && !target.name.is_empty() {
            return if target.resource.rules == Rules::Custom {
                Ok(Reply::Done(page_not_found()))
            } else {
                Err(error::no_such_resource())
            };
        }
        if let Some(part) = part {
            return subresource(store, call, target, part);
        }
        match (call.method.as_str(), target.name.is_empty()) {
            ("GET", _) if call.query.watch => {
                let selection = Selection::new(target, &call.query)?;
                Ok(Reply::Watch(watch::open(&self.0, store, call.user, selection, &call.query, call.form)?))
            }
            ("GET", true) => {
                let selection = Selection::new(target, &call.query)?;
                let list = store.list_selected(&selection, &call.query, call.at)?;
                match call.form.list(subject(store, target)?, &list)? {
                    Some(formed) => Ok(ok(&formed)),
                    None => Ok(ok(&list)),
                }
            }
            ("GET", false) => {
                let object = store.read(target, &call.query, call.at)?;
                Ok(ok(&*call.form.object(subject(store, target)?, object)?))
            }
            ("POST", true) => {
                if misplaced {
                    return Err(not_supported(target, "create"));
                }
                let object = call.object_of(&target.resource.kind, custom)?;
                call.query.check_manager("CreateOptions")?;
                let written = store.create(call.writer(), target, object)?;
                Ok(wrote(target, &written))
            }
            ("PUT", false) => {
                let update = Update::Replace(call.object_of(&target.resource.kind, custom)?);
                call.query.check_manager("UpdateOptions")?;
                Ok(wrote(target, &store.update(call.writer(), target, Part::Main, &update)?))
            }
            ("PATCH", false) => {
                Ok(wrote(target, &store.update(call.writer(), target, Part::Main, &call.patch(target)?)?))
            }
            ("DELETE", false) => delete(store, call, target),
            ("DELETE", true) if misplaced => Err(not_supported(target, "delete")),
            ("DELETE", true) => delete_collection(store, call, target),
            ("PUT", true) if target.resource.rules == Rules::Custom => Err(error::bad_request("name must be provided")),
            ("HEAD", _) => Ok(Reply::Done(plain(StatusCode::OK, ""))),
            (verb, _) => Err(not_supported(target, &verb.to_lowercase())),
        }
    }
}

/// A method that this address does not take. Built-in resources have no handler for it, custom ones have one that says so.
fn not_supported(target: &Target, verb: &str) -> Box<Status> {
    if target.resource.rules == Rules::Custom {
        error::method_not_supported(target.resource.named(), verb)
    } else {
        error::no_such_method()
    }
}

/// What the objects of an answer are.
fn subject<'a>(store: &Store, target: &'a Target) -> Answer<Subject<'a>> {
    Ok(Subject { resource: &target.resource, version: target.served()?, now: store.clock.now() })
}

fn subresource(store: &mut Store, call: &Call<'_>, target: &Target, part: Subresource) -> Answer<Reply> {
    let version = target.served()?;
    let custom = target.resource.rules == Rules::Custom;
    let is_pod = target.resource.rules == Rules::Pod;
    let offered = match part {
        Subresource::Status => version.status,
        Subresource::Scale => version.scale.is_some(),
        Subresource::Eviction | Subresource::Binding | Subresource::Log | Subresource::Process => is_pod,
        Subresource::Finalize => target.resource.rules == Rules::Namespace,
        Subresource::Other => false,
    };
    if !offered {
        return Err(if target.resource.rules == Rules::Custom {
            target.not_found()
        } else {
            error::no_such_resource()
        });
    }
    let kind = if part == Subresource::Scale { "Scale" } else { &target.resource.kind };
    let update = || match call.method.as_str() {
        "PATCH" => call.patch(target),
        _ => call.object_of(kind, custom).map(Update::Replace),
    };
    match (part, call.method.as_str()) {
        (Subresource::Status, "GET") => {
            let object = store.read(target, &call.query, call.at)?;
            Ok(ok(&*call.form.object(subject(store, target)?, object)?))
        }
        (Subresource::Status, "PUT" | "PATCH") => {
            Ok(wrote(target, &store.update(call.writer(), target, Part::Status, &update()?)?))
        }
        (Subresource::Scale, "GET") => {
            let object = store.read(target, &call.query, call.at)?;
            Ok(ok(&*call.form.scale(subject(store, target)?, scale::of(target, &object)?)?))
        }
        (Subresource::Scale, "PUT" | "PATCH") => Ok(ok(&scale::change(store, call.writer(), target, &update()?)?)),
        (Subresource::Eviction, "POST") => {
            let eviction = call.object_of("Eviction", custom)?;
            let status = eviction::evict(store, call.writer(), target, &eviction)?;
            let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::CREATED);
            Ok(Reply::Done(json_response(code, &error::to_value(&status))))
        }
        (Subresource::Binding, "POST") => {
            let binding = call.object_of("Binding", custom)?;
            eviction::bind(store, call.writer(), target, &binding)?;
            let status = Status { code: 201, ..Status::success() };
            Ok(Reply::Done(json_response(StatusCode::CREATED, &error::to_value(&status))))
        }
        (Subresource::Finalize, "PUT") => {
            let object = call.object_of(&target.resource.kind, custom)?;
            Ok(ok(&*store.finalize_namespace(call.writer(), target, &object)?))
        }
        (Subresource::Log, "GET") => {
            let pod = store.read(target, &call.query, call.at)?;
            store.logs.answer(&pod, call.text)
        }
        (Subresource::Process, _) => {
            Err(error::not_implemented("the processes of this cluster are simulated: nobody can attach to them"))
        }
        (_, verb) => Err(not_supported(target, &verb.to_lowercase())),
    }
}

fn delete(store: &mut Store, call: &Call<'_>, target: &Target) -> Answer<Reply> {
    let options = call.delete_options()?;
    let writer = Writer { dry_run: options.dry_run, ..call.writer() };
    let reply = match store.delete(writer, target, &options)? {
        Deleted::Waiting(object) => ok(&*shown(target, &object)),
        Deleted::Gone(object) if target.resource.returns_deleted_object() => ok(&*shown(target, &object)),
        Deleted::Gone(object) => ok(&json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details(target, &object),
        })),
    };
    Ok(reply)
}

fn details(target: &Target, object: &Value) -> Value {
    let resource = &target.resource;
    let mut details = json!({
        "name": target.name,
        "kind": resource.plural,
        "uid": super::object::meta_text(object, "uid"),
    });
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    details
}

fn delete_collection(store: &mut Store, call: &Call<'_>, target: &Target) -> Answer<Reply> {
    let options = call.delete_options()?;
    let selection = Selection::new(target, &call.query)?;
    let list = store.list_selected(&selection, &call.query, None)?;
    for object in &list.items {
        let one = Target {
            resource: Arc::clone(&target.resource),
            version: target.version.clone(),
            namespace: super::object::meta_text(object, "namespace").to_owned(),
            name: super::object::name(object).to_owned(),
        };
        store.delete(Writer { dry_run: options.dry_run, ..call.writer() }, &one, &options)?;
    }
    Ok(ok(&list))
}

fn shown(target: &Target, stored: &Arc<Value>) -> Arc<Value> {
    match target.resource.version(&target.version) {
        Some(version) => super::definition::view(&target.resource, version, stored),
        None => Arc::clone(stored),
    }
}

fn ok(body: &impl Serialize) -> Reply {
    Reply::Done(json_response(StatusCode::OK, body))
}

fn wrote(target: &Target, written: &Written) -> Reply {
    let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json_response(code, &*shown(target, &written.object));
    warn(&mut response, &written.warnings);
    Reply::Done(response)
}

fn warn(response: &mut Response<Bytes>, warnings: &[String]) {
    for warning in warnings {
        let text = format!("299 - {warning:?}");
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// Whether the caller understands any of what the server can write.
fn check_accepted(target: &Target, accepts: &str) -> Answer<()> {
    let media = |one: &str| one.split(';').next().unwrap_or("").trim().to_owned();
    let fits = |one: String| matches!(one.as_str(), "" | "*/*" | "application/*") || MEDIA.contains(&one.as_str());
    if accepts.split(',').map(media).any(fits) {
        return Ok(());
    }
    let list = MEDIA.join(", ");
    let custom = target.resource.rules == Rules::Custom;
    let message = if custom {
        format!("only the following media types are accepted: {list}")
    } else {
        format!("406: Not Acceptable\n\nAvailable representations: {list}")
    };
    Err(error::not_acceptable(&message, custom))
}

pub(super) fn json_response(code: StatusCode, body: &impl Serialize) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(serde_json::to_vec(body).unwrap_or_default()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refusal(status: &Status) -> Response<Bytes> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(code, &error::to_value(status));
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

fn plain(code: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn page_not_found() -> Response<Bytes> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}
