//! A tier as a line of cells: where each of its resources stands. Pure.

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use windlass_rehearsal::stamping::reading::{has_failed, image_of, is_current, is_manual, is_ready};

/// How a resource stands, by what the API has of it and not by what the operator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has its tier's image, and runs it.
    Done,
    /// It has its tier's image, and does not run it yet.
    Moving,
    /// It has another image.
    Old,
    /// It has its tier's image, and gave up.
    Failed,
    /// A person chose its image.
    Manual,
}

impl Standing {
    /// All of them, in the order of the legend.
    pub const ALL: [Self; 5] = [Self::Done, Self::Moving, Self::Old, Self::Failed, Self::Manual];

    /// Where a resource stands whose tier shall have this image.
    pub fn of(resource: &Value, wanted: &str) -> Self {
        if is_manual(resource) {
            Self::Manual
        } else if image_of(resource) != Some(wanted) {
            Self::Old
        } else if is_ready(resource) {
            Self::Done
        } else if has_failed(resource) && is_current(resource) {
            Self::Failed
        } else {
            Self::Moving
        }
    }

    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "up to date",
            Self::Moving => "on the way",
            Self::Old => "old",
            Self::Failed => "failed",
            Self::Manual => "manual",
        }
    }

    /// How it is drawn. Each is told from the others without colours, too.
    pub fn glyph(self) -> (char, Style) {
        match self {
            Self::Done => ('█', AnsiColor::Green.on_default()),
            Self::Moving => ('▒', AnsiColor::Yellow.on_default()),
            Self::Old => ('·', Style::new().dimmed()),
            Self::Failed => ('F', AnsiColor::Red.on_default().bold()),
            Self::Manual => ('m', AnsiColor::Magenta.on_default()),
        }
    }
}

/// A cell of several resources, some of them up to date and some old.
pub const PARTLY: (char, Style) = ('▄', AnsiColor::Green.on_default());

/// How many resources share a cell, so that so many fit into a line.
pub fn per_cell(resources: usize, cells: usize) -> usize {
    resources.div_ceil(cells.max(1)).max(1)
}

/// The cells of a tier: trouble first, then what is on its way, so that neither hides behind its neighbours.
pub fn cells(standings: &[Standing], per_cell: usize) -> Vec<(char, Style)> {
    standings.chunks(per_cell.max(1)).map(cell).collect()
}

fn cell(standings: &[Standing]) -> (char, Style) {
    let has = |standing: Standing| standings.contains(&standing);
    if has(Standing::Failed) {
        Standing::Failed.glyph()
    } else if has(Standing::Moving) {
        Standing::Moving.glyph()
    } else if has(Standing::Done) && has(Standing::Old) {
        PARTLY
    } else if has(Standing::Done) {
        Standing::Done.glyph()
    } else if has(Standing::Old) {
        Standing::Old.glyph()
    } else {
        Standing::Manual.glyph()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::Standing::{self, Done, Failed, Manual, Moving, Old};
    use super::{cells, per_cell};

    fn dicom(image: &str, observed: i64, conditions: &[(&str, &str)]) -> Value {
        let conditions: Vec<Value> =
            conditions.iter().map(|(type_, status)| json!({"type": type_, "status": status})).collect();
        json!({
            "metadata": {"generation": 3},
            "spec": {"image": image},
            "status": {"observedGeneration": observed, "conditions": conditions},
        })
    }

    #[rstest]
    #[case::old("v1", 3, &[("UpToDate", "True")], Old)]
    #[case::done("v2", 3, &[("UpToDate", "True")], Done)]
    #[case::said_of_the_spec_before("v2", 2, &[("UpToDate", "True")], Moving)]
    #[case::not_yet("v2", 3, &[("UpToDate", "False")], Moving)]
    #[case::failed("v2", 3, &[("UpToDate", "False"), ("Failed", "True")], Failed)]
    #[case::failed_before("v2", 2, &[("Failed", "True")], Moving)]
    fn a_resource_stands_where_the_api_says(
        #[case] image: &str,
        #[case] observed: i64,
        #[case] conditions: &[(&str, &str)],
        #[case] expected: Standing,
    ) {
        assert_eq!(Standing::of(&dicom(image, observed, conditions), "v2"), expected);
    }

    #[test]
    fn a_manual_image_is_manual_whatever_else_it_is() {
        let mut one = dicom("v2", 3, &[("UpToDate", "True")]);
        one["spec"]["manuallySpecifiedImage"] = json!(true);
        assert_eq!(Standing::of(&one, "v2"), Manual);
    }

    #[rstest]
    #[case::all_done(&[Done, Done], '█')]
    #[case::all_old(&[Old, Old], '·')]
    #[case::half_done(&[Done, Old], '▄')]
    #[case::one_on_the_way(&[Done, Moving], '▒')]
    #[case::a_failure_hides_behind_nobody(&[Moving, Failed], 'F')]
    #[case::a_manual_one_beside_another(&[Manual, Done], '█')]
    #[case::manual_alone(&[Manual], 'm')]
    fn a_cell_shows_what_matters_most(#[case] standings: &[Standing], #[case] expected: char) {
        let drawn: Vec<char> = cells(standings, 2).into_iter().map(|(glyph, _)| glyph).collect();
        assert_eq!(drawn, [expected]);
    }

    #[test]
    fn no_two_standings_look_alike_without_colours() {
        let glyphs: std::collections::BTreeSet<char> = Standing::ALL.map(|standing| standing.glyph().0).into();
        assert_eq!(glyphs.len(), Standing::ALL.len());
        assert!(!glyphs.contains(&super::PARTLY.0));
    }

    #[rstest]
    #[case(80, 40, 2)]
    #[case(81, 40, 3)]
    #[case(80, 200, 1)]
    #[case(0, 40, 1)]
    #[case(80, 0, 80)]
    fn everybody_fits(#[case] resources: usize, #[case] columns: usize, #[case] expected: usize) {
        assert_eq!(per_cell(resources, columns), expected);
        assert!(cells(&vec![Old; resources], expected).len() <= columns.max(1));
    }
}
