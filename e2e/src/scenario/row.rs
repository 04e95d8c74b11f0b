//! One line of the closing table for each scenario.

use serde::Serialize;

use super::{control_plane::mass::Figures, facts::Facts};

/// What is said of a scenario at the end.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its name.
    pub scenario: String,
    /// Writes that the store acknowledged.
    pub acknowledged: usize,
    /// Of these, how many are not there.
    pub lost: usize,
    /// Writes that failed for sure.
    pub failed: usize,
    /// Writes whose outcome the client does not know.
    pub unknown: usize,
    /// The longest time without an acknowledgement.
    pub longest_stall_ms: u64,
    /// All such times together.
    pub total_stall_ms: u64,
    /// How often another member began to lead.
    pub leadership_moves: usize,
    /// Pods that were ended while they led.
    pub leader_restarts: usize,
    /// The smallest number of members that were healthy at once.
    pub smallest_healthy: usize,
    /// How many members there are.
    pub members: usize,
    /// How long it took, with everything around it.
    pub seconds: u64,
    /// What a fleet came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Figures>,
    /// Facts of the scenario's own.
    pub notes: Vec<String>,
    /// What went wrong; empty if nothing did.
    pub wrong: Vec<String>,
    /// Where everything about a failure is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl Row {
    /// Takes over what the facts say.
    pub fn measure(&mut self, facts: &Facts) {
        let stalls = facts.ledger.stalls();
        self.acknowledged = facts.ledger.acknowledged();
        self.lost = facts.lost.len();
        self.failed = facts.ledger.failed();
        self.unknown = facts.ledger.unknown();
        self.longest_stall_ms = stalls.longest_ms;
        self.total_stall_ms = stalls.total_ms;
        self.leadership_moves = facts.testimony.moves;
        self.leader_restarts = facts.testimony.leader_restarts.len();
        self.smallest_healthy = facts.testimony.smallest_healthy;
    }

    /// Nothing went wrong.
    pub fn passed(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// All rows as a table.
pub fn table(rows: &[Row]) -> String {
    let heads = [
        "scenario",
        "acknowledged",
        "lost",
        "failed",
        "unknown",
        "stalled ms (longest/total)",
        "moves",
        "leader restarts",
        "smallest healthy",
        "seconds",
        "result",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for row in rows {
        // Where there is no application there is nothing to measure.
        let measured = |figure: String| if row.members == 0 { "-".to_owned() } else { figure };
        lines.push(vec![
            row.scenario.clone(),
            measured(row.acknowledged.to_string()),
            measured(row.lost.to_string()),
            measured(row.failed.to_string()),
            measured(row.unknown.to_string()),
            measured(format!("{}/{}", row.longest_stall_ms, row.total_stall_ms)),
            measured(row.leadership_moves.to_string()),
            measured(row.leader_restarts.to_string()),
            measured(format!("{} of {}", row.smallest_healthy, row.members)),
            row.seconds.to_string(),
            if row.passed() { "ok" } else { "FAILED" }.to_owned(),
        ]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let print = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut text: Vec<String> = lines.iter().map(print).collect();
    for row in rows {
        text.extend(row.fleet.iter().map(|figures| format!("\n{}\n{figures}\n", row.scenario)));
        text.extend(row.wrong.iter().map(|wrong| format!("{}: {wrong}", row.scenario)));
        let kept = row.evidence.iter();
        text.extend(kept.map(|folder| format!("{}: everything about it is in {folder}", row.scenario)));
    }
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Row, table};

    #[test]
    fn a_failure_says_why_and_where() {
        let fine = Row { scenario: "one".into(), ..Row::default() };
        let failed = Row {
            scenario: "two".into(),
            wrong: vec!["it rained".into()],
            evidence: Some("/there".into()),
            ..Row::default()
        };
        let text = table(&[fine, failed]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("one") && lines[1].ends_with("ok"), "{text}");
        assert!(lines[2].starts_with("two") && lines[2].ends_with("FAILED"), "{text}");
        assert_eq!(lines[3..], ["two: it rained", "two: everything about it is in /there"]);
    }
}
