//! `windlass plan` as a program: its exit codes, its words, and what it sends over the wire.

#![cfg(feature = "sim")]
#![allow(clippy::expect_used, reason = "a test that lacks something has failed")]

use std::{
    io::Write,
    net::SocketAddr,
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_rehearsal::setting::PD;
use windlass_sim::{
    harness::Cluster,
    journal::{Event, Journal},
};

/// A kubeconfig for a server on loopback.
fn kubeconfig(address: SocketAddr) -> tempfile::NamedTempFile {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": PD.namespace}}],
        "users": [{"name": "test", "user": {}}],
    });
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(config.to_string().as_bytes()).expect("a file that can be written");
    file
}

fn windlass(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    // Who reads nothing may be gone already.
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).ok();
    child.wait_with_output().expect("its end")
}

#[track_caller]
fn says(output: &Output, code: i32, words: &[&str]) {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours are for terminals: {text:?}");
}

/// The program against an embedded API without controllers, and everything that was written there.
fn on_server(objects: Vec<Value>, arguments: &[&str], input: &str) -> (Output, Journal) {
    let (ready, server) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let cluster = Cluster::new(1);
            for object in objects {
                cluster.api.create_value("user", object).expect("an object that the API takes");
            }
            // What the cluster and the test made is not looked at.
            cluster.journal.entries().clear();
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            ready.send((address, cluster.journal.clone())).expect("somebody who waits");
            cluster.api.serve(listener).await
        })
    });
    let (address, journal) = server.recv().expect("a server");
    let kubeconfig = kubeconfig(address);
    let path = kubeconfig.path().to_str().expect("a path");
    let words: Vec<&str> = ["plan", "--kubeconfig", path].iter().chain(arguments).copied().collect();
    (windlass(&words, input), journal)
}

fn wish() -> String {
    PD.quorum_cluster("pd", PD.reference.1).to_string()
}

#[test]
fn a_wish_is_planned_where_not_even_its_kind_is_known() {
    let plain = |object: &Value| object["kind"] != "QuorumCluster" && object["kind"] != "CustomResourceDefinition";
    let objects: Vec<Value> = PD.objects(3, PD.reference.0, "").into_iter().filter(plain).collect();
    let (output, journal) = on_server(objects, &["-f", "-", "-o", "json"], &wish());
    says(&output, 2, &[]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!((&report["format"], &report["verdict"]), (&json!(2), &json!("Blocked")));
    assert_eq!(report["blockedBy"]["reason"], "PodNotReady", "nobody makes pods here: {report}");
    let writes = journal.entries().iter().filter(|entry| matches!(entry.event, Event::Write(_))).count();
    assert_eq!(writes, 0);
}

#[test]
fn a_resource_is_planned_by_name() {
    let objects = PD.objects(3, PD.reference.0, PD.reference.1);
    let (output, _) = on_server(objects.clone(), &["pd"], "");
    says(&output, 2, &["tikv/pd  Pd 8.5.3", "Blocked now: PodNotReady", "pod pd-0 does not exist yet", "to do:"]);
    let (output, _) = on_server(objects, &["other"], "");
    says(&output, 1, &["error: there is no QuorumCluster tikv/other"]);
}

#[test]
fn what_goes_wrong_is_said_in_words_and_ends_with_1() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let kubeconfig = kubeconfig(nobody);
    let path = kubeconfig.path().to_str().expect("a path");
    let plan = |arguments: &[&str], input: &str| {
        windlass(&["plan", "--kubeconfig", path].iter().chain(arguments).copied().collect::<Vec<_>>(), input)
    };
    says(
        &plan(&["pd"], ""),
        1,
        &["error: the cluster at 127.0.0.1 does not answer: check the kubeconfig and its context"],
    );
    says(&plan(&["pd", "--context", "other"], ""), 1, &["error: no way to reach a cluster", "other"]);
    says(&plan(&["-f", "/nowhere.yaml"], ""), 1, &["error: can't read /nowhere.yaml"]);
    says(&plan(&["-f", "-"], "kind: Pod\n"), 1, &["it must hold exactly one QuorumCluster"]);
    says(&plan(&["-f", "-", "-n", "other"], &wish()), 1, &["namespace tikv is not other"]);
    says(&plan(&[], ""), 1, &["required"]);
    says(&plan(&["pd", "-f", "-"], ""), 1, &["cannot be used with"]);
}

#[test]
fn the_exit_codes_are_in_the_help() {
    let help = String::from_utf8(windlass(&["plan", "--help"], "").stdout).expect("text");
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for code in ["Exits with 0", "with 1 on an error", "with 2 when a gate"] {
        assert!(words.contains(code), "{help}");
    }
}
