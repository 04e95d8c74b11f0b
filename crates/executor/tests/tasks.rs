//! The task on loopback: what members and buckets say, what is stored of it, and what is left when it breaks.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that lacks something has failed")]

use std::{
    fs,
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use rstest::rstest;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use windlass_api::executor::Stored;
use windlass_executor::{
    Class, Error,
    s3::{Bucket, Key, PART},
    snapshot::{Credentials, Giver, Member, Order, run},
    store::Store,
};
use windlass_systems::{Network, Password, Secret, etcd, openbao::Product};

const BAO: Giver = Giver::OpenBao(Product::OpenBao);
const VAULT: Giver = Giver::OpenBao(Product::Vault);
const TOKEN: &str = "hvs.CAESIJ";

/// A server that answers every request alike, and keeps what it was sent.
#[derive(Clone)]
struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    async fn start(answer: Vec<u8>) -> Self {
        Self::start_with(vec![answer]).await
    }

    /// One answer after the other, and the last one for ever.
    async fn start_with(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, heard) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<Vec<u8>>>>::default());
        let server = Self { port, heard };
        let kept = server.heard.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (mut request, mut piece, mut wanted) = (Vec::new(), vec![0; 65_536], false);
                while !is_whole(&request) {
                    match socket.read(&mut piece).await {
                        Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
                        Ok(_) | Err(_) => break,
                    }
                    if !wanted && asks(&request) {
                        wanted = true;
                        let _ = socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
                    }
                }
                let number = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(request);
                    kept.len() - 1
                };
                let _ = socket.write_all(answers.get(number).or(answers.last()).unwrap()).await;
            }
        });
        server
    }

    fn member(&self) -> Member {
        format!("etcd-0=etcd-0.etcd.registry.svc:{}@127.0.0.1", self.port).parse().unwrap()
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }
}

/// Whether the body is held back until it is wanted.
fn asks(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    text.split_once("\r\n\r\n").is_some_and(|(head, _)| head.contains("\r\nexpect: 100-continue"))
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let start = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    request.len() >= start + length
}

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// The answer, broken off after so many bytes of its body.
fn broken(body: &[u8], after: usize) -> Vec<u8> {
    let whole = answer("200 OK", body);
    whole[..whole.len() - body.len() + after].to_vec()
}

/// etcd's stream of a database in two pieces.
fn etcd_stream(database: &[u8]) -> Vec<u8> {
    let sum = ring::digest::digest(&ring::digest::SHA256, database);
    let half = database.len() / 2;
    let line = |left: usize, blob: &[u8]| {
        format!("{{\"result\":{{\"remaining_bytes\":\"{left}\",\"blob\":\"{}\"}}}}\n", STANDARD.encode(blob))
    };
    let pieces = [line(database.len() - half, &database[..half]), line(0, &database[half..]), line(0, sum.as_ref())];
    pieces.concat().into_bytes()
}

/// An archive as OpenBao writes it, with or without the file that comes last.
fn archive(whole: bool) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut add = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, content).unwrap();
    };
    add("meta.json", b"{}");
    add("state.bin", &vec![7; 100_000]);
    if whole {
        add("SHA256SUMS", b"00  meta.json\n");
        add("SHA256SUMS.sealed", b"sealed");
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn order(giver: Giver, members: Vec<Member>, store: Store) -> Order {
    Order {
        giver,
        members,
        network: Network::plain(),
        tls: false,
        credentials: Credentials::Token(Secret::new(TOKEN).unwrap()),
        not_after: Timestamp::now() + Duration::from_mins(1),
        file: "etcd-20261115T120000Z-1.db".into(),
        store,
    }
}

fn folder(top: &TempDir) -> Store {
    Store::Folder { top: top.path().into(), folder: "nightly/etcd".into(), volume: "backups".into() }
}

async fn take(order: &Order) -> Result<Stored, Error> {
    run(order, Timestamp::now()).await
}

/// The names of all files below a folder, those without a snapshot's name too.
fn files(top: &Path) -> Vec<String> {
    let entries = fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(
            |path| if path.is_dir() { files(&path) } else { vec![path.file_name().unwrap().display().to_string()] },
        )
        .collect()
}

#[tokio::test]
async fn a_snapshot_of_etcd_is_stored_whole_and_measured() {
    let top = tempfile::tempdir().unwrap();
    let database = vec![42; 300_000];
    let server = Server::start_with(etcd(answer("200 OK", &etcd_stream(&database)))).await;
    let stored = take(&order(Giver::Etcd, vec![server.member()], folder(&top))).await.unwrap();
    let file = fs::read(top.path().join("nightly/etcd/etcd-20261115T120000Z-1.db")).unwrap();
    assert_eq!(file[..database.len()], database);
    assert_eq!(file.len(), database.len() + 32, "the checksum that a restore reads is behind it");
    let sum = ring::digest::digest(&ring::digest::SHA256, &file);
    let digits = |at: usize| u8::from_str_radix(&stored.sha256[2 * at..2 * at + 2], 16).unwrap();
    assert_eq!((stored.bytes, stored.sha256.len()), (file.len() as u64, 64));
    assert!(sum.as_ref().iter().enumerate().all(|(at, byte)| digits(at) == *byte));
    assert_eq!(stored.place, "volume backups/nightly/etcd/etcd-20261115T120000Z-1.db");
    assert_eq!(files(top.path()).len(), 1);
}

#[tokio::test]
async fn a_snapshot_of_openbao_is_stored_as_it_came() {
    let top = tempfile::tempdir().unwrap();
    let server = Server::start_with(bao(&ACTIVE, &archive(true), &ACTIVE)).await;
    let stored = take(&order(BAO, vec![server.member()], folder(&top))).await.unwrap();
    assert_eq!(stored.bytes, archive(true).len() as u64);
    let heard = server.heard().remove(1).to_lowercase();
    assert!(heard.starts_with("get /v1/sys/storage/raft/snapshot ") && heard.contains("x-vault-no-request-forwarding"));
}

/// A status of health, and whether it is a standby's.
type Health = (&'static str, bool);

const ACTIVE: Health = ("200 OK", false);
const STANDBY: Health = ("429 Too Many Requests", true);

/// What a member of etcd says of itself.
fn etcd_status(leader: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"header":{{"member_id":"7"}},"version":"3.6.5","leader":"{leader}","raftIndex":"9","raftAppliedIndex":"9"}}"#
    );
    answer("200 OK", body.as_bytes())
}

/// One that leads, and gives this snapshot.
fn etcd(snapshot: Vec<u8>) -> Vec<Vec<u8>> {
    vec![etcd_status("7"), snapshot, etcd_status("7")]
}

/// What a pod of OpenBao says: how it is, a snapshot, and how it is afterwards.
fn bao((before, standby): &Health, snapshot: &[u8], (after, standby_after): &Health) -> Vec<Vec<u8>> {
    let health = |status: &str, standby: bool| {
        let body = format!(r#"{{"initialized":true,"sealed":false,"standby":{standby},"version":"2.5.5"}}"#);
        answer(status, body.as_bytes())
    };
    vec![health(before, *standby), answer("200 OK", snapshot), health(after, *standby_after)]
}

/// A follower's lacks what it has not applied yet, and what keeps the leader from giving one is told all the same.
#[tokio::test]
async fn a_snapshot_of_etcd_is_the_leaders() {
    let top = tempfile::tempdir().unwrap();
    let sound = || answer("200 OK", &etcd_stream(&[42; 3_000]));
    let moved = Server::start_with(vec![etcd_status("7"), sound(), etcd_status("8")]).await;
    let follower = Server::start(etcd_status("8")).await;
    let leader = Server::start_with(etcd(sound())).await;
    let members = vec![moved.member(), follower.member(), leader.member()];
    take(&order(Giver::Etcd, members, folder(&top))).await.unwrap();
    assert_eq!((moved.heard().len(), follower.heard().len(), leader.heard().len()), (3, 1, 3));

    let refuses = Server::start_with(etcd(answer("403 Forbidden", b"{}"))).await;
    let members = vec![refuses.member(), follower.member()];
    let error = take(&order(Giver::Etcd, members, folder(&top))).await.unwrap_err();
    assert_eq!(error.class, Class::Denied, "{error}");
}

/// Since 2.5 a standby gives a snapshot, too: of what it has applied itself.
#[rstest]
#[case::never_led(&STANDBY, 1)]
#[case::leads_no_more(&ACTIVE, 3)]
#[tokio::test]
async fn a_snapshot_of_openbao_is_the_leaders(#[case] before: &Health, #[case] asked: usize) {
    let answers = || {
        let mut answers = bao(before, &archive(true), &STANDBY);
        if asked == 1 {
            answers.truncate(1);
        }
        answers
    };
    let top = tempfile::tempdir().unwrap();
    let other = Server::start_with(answers()).await;
    let error = take(&order(BAO, vec![other.member()], folder(&top))).await.unwrap_err();
    assert!(error.class == Class::Unreachable && error.message.contains("no member leads"), "{error}");
    assert!(other.heard().len() > asked && files(top.path()).is_empty(), "asked again: {:?}", other.heard());

    let other = Server::start_with(answers()).await;
    let leader = Server::start_with(bao(&ACTIVE, &archive(true), &ACTIVE)).await;
    take(&order(BAO, vec![other.member(), leader.member()], folder(&top))).await.unwrap();
    assert_eq!((other.heard().len(), leader.heard().len(), files(top.path()).len()), (asked, 3, 1));
}

#[rstest]
#[case::connection_broken(Giver::Etcd, broken(&etcd_stream(&vec![42; 300_000]), 200_000), Class::Unreachable)]
#[case::etcd_without_its_checksum(Giver::Etcd, answer("200 OK", &etcd_stream(&[1; 900])[..600]), Class::Unreachable)]
#[case::refused(Giver::Etcd, answer("503 Service Unavailable", b"no leader"), Class::Unreachable)]
#[case::broken_archive(BAO, broken(&archive(true), 150), Class::Unreachable)]
#[case::archive_that_ends_early(BAO, answer("200 OK", &archive(true)[..150]), Class::Unreachable)]
#[case::archive_without_its_last_file(BAO, answer("200 OK", &archive(false)), Class::Unreachable)]
#[case::no_archive(VAULT, answer("200 OK", b"hello"), Class::Unreachable)]
#[case::denied(BAO, answer("403 Forbidden", b"permission denied hvs.CAESIJ"), Class::Denied)]
#[tokio::test]
async fn what_is_not_whole_is_not_left_behind(#[case] giver: Giver, #[case] answer: Vec<u8>, #[case] class: Class) {
    let top = tempfile::tempdir().unwrap();
    let answers = if giver == Giver::Etcd {
        etcd(answer)
    } else {
        let mut answers = bao(&ACTIVE, &[], &ACTIVE);
        answers[1] = answer;
        answers
    };
    let server = Server::start_with(answers).await;
    let error = take(&order(giver, vec![server.member()], folder(&top))).await.unwrap_err();
    assert_eq!(error.class, class, "{error}");
    assert!(!error.message.contains(TOKEN), "{error}");
    assert_eq!(files(top.path()), Vec::<String>::new());
}

fn user() -> Credentials {
    Credentials::User(etcd::Login { name: "root".into(), password: Password::new("hunter2").unwrap() })
}

#[tokio::test]
async fn a_user_of_etcd_logs_in_first() {
    let top = tempfile::tempdir().unwrap();
    let token = answer("200 OK", br#"{"token":"abcdefgh.17"}"#);
    let answers = etcd(answer("200 OK", &etcd_stream(&[42; 3_000])));
    let member = Server::start_with(std::iter::once(token).chain(answers).collect()).await;
    let order = Order { credentials: user(), ..order(Giver::Etcd, vec![member.member()], folder(&top)) };
    assert_eq!(take(&order).await.unwrap().bytes, 3_032);
    let heard = member.heard();
    assert!(heard[0].starts_with("POST /v3/auth/authenticate") && heard[0].contains("hunter2"), "{heard:?}");
    assert!(heard[1].starts_with("POST /v3/maintenance/status"), "{heard:?}");
    assert!(heard[2].starts_with("POST /v3/maintenance/snapshot"), "{heard:?}");
    assert!(heard[2].contains("authorization: abcdefgh.17") && !heard[2].contains("hunter2"), "{heard:?}");
}

#[rstest]
#[case::wrong_password(vec![answer("400 Bad Request", br#"{"message":"etcdserver: authentication failed, invalid user ID or password"}"#)])]
#[case::not_root(vec![answer("200 OK", br#"{"token":"abcdefgh.17"}"#), answer("403 Forbidden", br#"{"message":"permission denied to abcdefgh.17"}"#)])]
#[tokio::test]
async fn a_user_who_may_not_is_told_and_nothing_is_shown(#[case] answers: Vec<Vec<u8>>) {
    let top = tempfile::tempdir().unwrap();
    let member = Server::start_with(answers).await;
    let order = Order { credentials: user(), ..order(Giver::Etcd, vec![member.member()], folder(&top)) };
    let error = take(&order).await.unwrap_err();
    assert_eq!(error.class, Class::Denied, "{error}");
    assert!(!error.message.contains("hunter2") && !error.message.contains("abcdefgh"), "{error}");
}

#[tokio::test]
async fn the_next_member_is_asked_when_one_gives_none() {
    let top = tempfile::tempdir().unwrap();
    let sick = Server::start_with(etcd(broken(&etcd_stream(&vec![42; 300_000]), 1_000))).await;
    let well = Server::start_with(etcd(answer("200 OK", &etcd_stream(&vec![42; 300_000])))).await;
    let nobody: Member = "etcd-1=etcd-1.etcd.registry.svc:1@127.0.0.1".parse().unwrap();
    let members = vec![nobody, sick.member(), well.member()];
    let stored = take(&order(Giver::Etcd, members, folder(&top))).await.unwrap();
    assert_eq!((stored.bytes, sick.heard().len(), files(top.path()).len()), (300_032, 2, 1));
}

#[tokio::test]
async fn what_is_there_is_left_alone() {
    let top = tempfile::tempdir().unwrap();
    let place = top.path().join("nightly/etcd");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("etcd-20261115T120000Z-1.db"), "older").unwrap();
    let server = Server::start_with(etcd(answer("200 OK", &etcd_stream(&[1; 10])))).await;
    let error = take(&order(Giver::Etcd, vec![server.member()], folder(&top))).await.unwrap_err();
    assert_eq!(error.class, Class::Store);
    assert_eq!(fs::read_to_string(place.join("etcd-20261115T120000Z-1.db")).unwrap(), "older");
    assert_eq!(files(top.path()).len(), 1);
}

#[tokio::test]
async fn who_comes_late_does_nothing() {
    let top = tempfile::tempdir().unwrap();
    let server = Server::start_with(etcd(answer("200 OK", &etcd_stream(&[1; 10])))).await;
    let late = order(Giver::Etcd, vec![server.member()], folder(&top));
    let error = run(&late, late.not_after).await.unwrap_err();
    assert_eq!((error.class, error.class.exit_code()), (Class::Late, 6));
    assert!(server.heard().is_empty() && files(top.path()).is_empty());
}

#[rstest]
#[case::folder("../other", "a.db")]
#[case::absolute("/etc", "a.db")]
#[case::file("nightly", "../a.db")]
#[case::hidden("nightly", ".a.db")]
#[tokio::test]
async fn nothing_is_written_outside(#[case] folder: &str, #[case] file: &str) {
    let top = tempfile::tempdir().unwrap();
    let server = Server::start_with(etcd(answer("200 OK", &etcd_stream(&[1; 10])))).await;
    let store = Store::Folder { top: top.path().into(), folder: folder.into(), volume: "backups".into() };
    let order = Order { file: file.into(), ..order(Giver::Etcd, vec![server.member()], store) };
    assert_eq!(take(&order).await.unwrap_err().class, Class::Invalid);
    assert!(files(top.path()).is_empty());
}

fn bucket(server: &Server, spool: &TempDir) -> Store {
    bucket_in_parts(server, spool, PART)
}

fn bucket_in_parts(server: &Server, spool: &TempDir, part: u64) -> Store {
    let bucket = Bucket {
        network: Network::plain(),
        tls: false,
        host: "localhost".into(),
        port: server.port,
        name: "backups".into(),
        prefix: "nightly".into(),
        region: "eu-central-1".into(),
        key: Key { id: "AKIA".into(), secret: "very-secret".into() },
        part,
    };
    Store::Bucket { bucket: Box::new(bucket), spool: spool.path().into() }
}

#[tokio::test]
async fn a_bucket_gets_the_whole_snapshot_with_its_checksum() {
    let spool = tempfile::tempdir().unwrap();
    let member = Server::start_with(etcd(answer("200 OK", &etcd_stream(&vec![42; 700_000])))).await;
    let service = Server::start(answer("200 OK", b"")).await;
    let stored = take(&order(Giver::Etcd, vec![member.member()], bucket(&service, &spool))).await.unwrap();
    assert_eq!(stored.place, "s3://backups/nightly/etcd-20261115T120000Z-1.db");
    let request = service.heard().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("put /backups/nightly/etcd-20261115t120000z-1.db?"), "{head}");
    assert!(head.contains("if-none-match: *") && head.contains(&format!("x-amz-meta-sha256: {}", stored.sha256)));
    assert!(head.contains("content-md5: "), "{head}");
    assert!(head.contains("x-amz-credential=akia%2f") && !head.contains("very-secret"), "{head}");
    assert!(head.contains("signedheaders=content-md5%3bhost%3bif-none-match%3bx-amz-meta-sha256"), "{head}");
    assert!(body.len() >= 700_000, "{}", body.len());
    assert!(files(spool.path()).is_empty());
}

#[rstest]
#[case::denied("403 Forbidden", Class::Denied)]
#[case::there_already("412 Precondition Failed", Class::Store)]
#[case::full("507 Insufficient Storage", Class::Store)]
#[tokio::test]
async fn a_bucket_that_refuses_is_told(#[case] status: &str, #[case] class: Class) {
    let spool = tempfile::tempdir().unwrap();
    let member = Server::start_with(etcd(answer("200 OK", &etcd_stream(&[42; 10])))).await;
    let service = Server::start(answer(status, b"<Error><Code>AccessDenied</Code></Error>")).await;
    let error = take(&order(Giver::Etcd, vec![member.member()], bucket(&service, &spool))).await.unwrap_err();
    assert_eq!(error.class, class, "{error}");
    assert!(error.message.contains("s3://backups/nightly/") && !error.message.contains("very-secret"), "{error}");
    assert!(files(spool.path()).is_empty());
}

/// A service that answers each request as it is told, and the last answer for ever.
async fn service(answers: &[(&str, &str, &str)]) -> Server {
    let written = |(status, headers, body): &(&str, &str, &str)| {
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    Server::start_with(answers.iter().map(written).collect()).await
}

const BEGUN: (&str, &str, &str) = (
    "200 OK",
    "",
    r#"<InitiateMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>backups</Bucket><Key>k</Key><UploadId>up</UploadId></InitiateMultipartUploadResult>"#,
);
const PUT: (&str, &str, &str) = ("200 OK", "etag: \"tag\"\r\n", "");
const BUSY: (&str, &str, &str) = ("503 Slow Down", "", "<Error><Code>SlowDown</Code></Error>");
const COMPLETED: (&str, &str, &str) = (
    "200 OK",
    "",
    r#"<CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>backups</Bucket><Key>k</Key><ETag>"tag-2"</ETag></CompleteMultipartUploadResult>"#,
);

/// A snapshot of 10 kB in parts of 4 kB, and what the service heard.
async fn in_parts(answers: &[(&str, &str, &str)]) -> (Result<Stored, Error>, Vec<String>) {
    let spool = tempfile::tempdir().unwrap();
    let member = Server::start_with(etcd(answer("200 OK", &etcd_stream(&[42; 10_000])))).await;
    let service = service(answers).await;
    let store = bucket_in_parts(&service, &spool, 4096);
    let stored = take(&order(Giver::Etcd, vec![member.member()], store)).await;
    assert!(files(spool.path()).is_empty());
    let first = |request: String| request.lines().next().unwrap_or_default().to_owned();
    (stored, service.heard().into_iter().map(first).collect())
}

#[tokio::test]
async fn what_is_large_is_sent_in_parts() {
    // One part has to be sent twice.
    let (stored, heard) = in_parts(&[BEGUN, PUT, BUSY, PUT, PUT, COMPLETED]).await;
    assert_eq!(stored.unwrap().place, "s3://backups/nightly/etcd-20261115T120000Z-1.db");
    let verbs: Vec<&str> = heard.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(verbs, ["POST", "PUT", "PUT", "PUT", "PUT", "POST"], "{heard:?}");
    let number = |line: &String| line.split('&').find_map(|word| word.strip_prefix("partNumber=").map(str::to_owned));
    let numbers: Vec<String> = heard.iter().filter_map(number).collect();
    assert_eq!(numbers, ["1", "2", "2", "3"], "{heard:?}");
}

#[rstest]
#[case::a_part_that_is_denied(&[BEGUN, ("403 Forbidden", "", "<Error><Code>AccessDenied</Code></Error>"), ("204 No Content", "", "")], Class::Denied, "AccessDenied")]
#[case::an_object_that_is_there(&[BEGUN, PUT, PUT, PUT, ("412 Precondition Failed", "", ""), ("204 No Content", "", "")], Class::Store, "already")]
#[case::a_failure_that_is_said_late(&[BEGUN, PUT, PUT, PUT, ("200 OK", "", "<Error><Code>InternalError</Code></Error>"), ("204 No Content", "", "")], Class::Store, "InternalError")]
#[case::a_part_without_a_name(&[BEGUN, ("200 OK", "", ""), ("204 No Content", "", "")], Class::Store, "what it calls a part")]
#[tokio::test]
async fn nothing_is_left_of_parts_that_make_no_object(
    #[case] answers: &[(&str, &str, &str)],
    #[case] class: Class,
    #[case] why: &str,
) {
    let (stored, heard) = in_parts(answers).await;
    let error = stored.unwrap_err();
    assert!(error.class == class && error.message.contains(why), "{error}");
    let last = heard.last().unwrap();
    assert!(last.starts_with("DELETE ") && last.contains("uploadId=up"), "{heard:?}");
}

#[rstest]
#[case("etcd-0=etcd-0.etcd:2379")]
#[case("etcd-0=etcd-0.etcd@10.0.0.1")]
#[case("etcd-0=:2379@10.0.0.1")]
#[case("etcd-0=etcd-0:2379@etcd")]
#[case("=etcd-0.etcd:2379@10.0.0.1")]
#[case("etcd-0.etcd:2379@10.0.0.1")]
fn what_names_no_member_is_refused(#[case] text: &str) {
    assert!(text.parse::<Member>().unwrap_err().contains("NAME:PORT@ADDRESS"));
}
