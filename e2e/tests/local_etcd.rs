//! The load generator and the witness on three etcd processes of this machine: what they report is what was done to the processes.
//!
//!     WINDLASS_ETCD=/path/to/etcd cargo test -p windlass-e2e --test local_etcd -- --ignored

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{sync::watch, time::Instant};
use windlass_e2e::{
    audit::Ending,
    client::{Access, Application, Gateway},
    load::{self, Load, Rate},
    witness::{Seat, Witness, judge},
};

const FIRST_PORT: u16 = 26_600;

/// Three processes; gone with the test.
struct Trio {
    directory: PathBuf,
    binary: String,
    members: Vec<Option<Child>>,
}

impl Trio {
    fn start() -> Self {
        let binary = std::env::var("WINDLASS_ETCD").expect("WINDLASS_ETCD says where etcd is");
        let directory = std::env::temp_dir().join(format!("windlass-local-etcd-{}", std::process::id()));
        let mut trio = Self { directory, binary, members: vec![None, None, None] };
        (0..3).for_each(|member| trio.run(member));
        trio
    }

    fn run(&mut self, member: u16) {
        let url = |member: u16, offset: u16| format!("http://127.0.0.1:{}", FIRST_PORT + 10 * member + offset);
        let cluster: Vec<String> = (0..3).map(|member| format!("etcd-{member}={}", url(member, 1))).collect();
        let directory = self.directory.join(member.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(directory.join("log")).unwrap();
        let child = Command::new(&self.binary)
            .arg(format!("--name=etcd-{member}"))
            .arg(format!("--data-dir={}", path(&directory.join("data"))))
            .arg(format!("--listen-client-urls={}", url(member, 0)))
            .arg(format!("--advertise-client-urls={}", url(member, 0)))
            .arg(format!("--listen-peer-urls={}", url(member, 1)))
            .arg(format!("--initial-advertise-peer-urls={}", url(member, 1)))
            .arg(format!("--initial-cluster={}", cluster.join(",")))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.members[usize::from(member)] = Some(child);
    }

    fn kill(&mut self, member: u16) {
        let mut child = self.members[usize::from(member)].take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Trio {
    fn drop(&mut self) {
        for child in self.members.iter_mut().flatten() {
            let _killed = child.kill();
            let _ended = child.wait();
        }
        let _removed = std::fs::remove_dir_all(&self.directory);
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

async fn until(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !holds() {
        assert!(Instant::now() < deadline, "waited {seconds} s for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an etcd binary"]
async fn a_killed_leader_shows_in_the_books_and_a_hand_over_does_not() {
    let mut trio = Trio::start();
    let addresses: Vec<SocketAddr> =
        (0..3).map(|member| SocketAddr::from(([127, 0, 0, 1], FIRST_PORT + 10 * member))).collect();
    let seats = addresses.iter().enumerate();
    let seats = seats.map(|(index, address)| Seat { pod: format!("etcd-{index}"), address: Some(*address) }).collect();
    let (_seats, seats) = watch::channel(seats);
    let (_endpoints, endpoints) = watch::channel(addresses.clone());
    let access = Access::to(Application::Etcd);
    let witness = Witness::start(&access, &seats);
    until("a leader and three members", 30, || witness.leader().is_some() && witness.newest().len() == 3).await;

    // A hand-over: leadership moves, and nothing is lost or stalls for long.
    let load = Load::start(&access, endpoints.clone(), "calm", Rate::default());
    until("writes", 10, || load.acknowledged() > 40).await;
    let leader = witness.leader().unwrap();
    let target = witness.newest().into_iter().find(|(pod, _)| *pod != leader).unwrap();
    let ordinal = |pod: &str| pod.trim_start_matches("etcd-").parse::<u16>().unwrap();
    let gateway = Gateway::new(Duration::from_secs(1), Duration::from_secs(5));
    gateway.move_leader(addresses[usize::from(ordinal(&leader))], target.1.member).await.unwrap();
    until("the new leader", 10, || witness.leader().as_ref() == Some(&target.0)).await;
    until("more writes", 10, || load.acknowledged() > 100).await;
    let calm = load.stop().await;
    println!("calm: {} acknowledged, {} unknown, {:?}", calm.acknowledged(), calm.unknown(), calm.stalls());
    assert_eq!((calm.failed(), calm.wrong_reads.len()), (0, 0));
    assert_eq!(load::missing(&access, &calm, &addresses, "calm").await.unwrap(), Vec::<String>::new());

    // The leader is killed: an election, and a stall.
    let load = Load::start(&access, endpoints, "rough", Rate::default());
    until("writes", 10, || load.acknowledged() > 40).await;
    let leader = witness.leader().unwrap();
    let ending = Ending { pod: leader.clone(), at: Timestamp::now(), user: "test".into(), agent: String::new() };
    trio.kill(ordinal(&leader));
    until("another leader", 20, || witness.leader().is_some_and(|now| now != leader)).await;
    let so_far = load.acknowledged();
    until("more writes", 20, || load.acknowledged() > so_far + 20).await;
    trio.run(ordinal(&leader));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let rough = load.stop().await;
    println!("rough: {} acknowledged, {} unknown, {:?}", rough.acknowledged(), rough.unknown(), rough.stalls());
    assert!(rough.stalls().longest_ms > 250, "{:?}", rough.stalls());
    assert_eq!(load::missing(&access, &rough, &addresses, "rough").await.unwrap(), Vec::<String>::new());

    let testimony = judge(&witness.stop().await, std::slice::from_ref(&ending), 3);
    println!("{testimony:?}");
    assert_eq!((testimony.moves, testimony.leader_restarts), (2, vec![ending]));
    assert!(testimony.smallest_healthy <= 2);

    // The books notice what is not there.
    let mut forged = rough.clone();
    forged.writes[0].value.push('!');
    assert!(!load::missing(&access, &forged, &addresses, "rough").await.unwrap().is_empty());
}
