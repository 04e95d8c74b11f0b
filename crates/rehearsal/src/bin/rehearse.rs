//! Runs the suites.
fn main() {
    let outcome = windlass_sim::harness::run(&windlass_rehearsal::pd::reference(1), &[], &windlass_rehearsal::operator).unwrap();
    for entry in &outcome.journal {
        match &entry.event {
            windlass_sim::journal::Event::Write(c) => println!("{} {} {:?} {}/{} ", entry.at, c.user, c.verb, c.resource, c.name),
            windlass_sim::journal::Event::Quorum(q) => println!("{} TRUTH {:?}", entry.at, q.members.iter().map(|m| format!("{}{}{} {}", m.pod, if m.leader {"*"} else {""}, if m.healthy {"+"} else {"-"}, m.version)).collect::<Vec<_>>()),
            other => println!("{} {other:?}", entry.at),
        }
    }
    println!("{:?} settled {} {:?}", outcome.verdict, outcome.settled, outcome.elapsed);
    println!("{}", serde_json::to_string_pretty(&outcome.subject).unwrap());
}
