//! How many pods each ReplicaSet is to have: arithmetic, and nothing else.
//!
//! All functions take the sets from the oldest to the youngest and the index of the new one among them.

use super::set::Set;
use super::wanted::Wanted;

/// A set, by its index, and the size that it gets.
pub(super) type Resized = (usize, i64);

fn total(sets: &[Set]) -> i64 {
    sets.iter().map(|set| set.size).sum()
}

/// The size of the new set, now or when it is made (`size` is 0 then).
pub(super) fn raised(wanted: &Wanted, sets: &[Set], size: i64) -> i64 {
    if wanted.recreate {
        return wanted.replicas;
    }
    let room = wanted.most() - total(sets);
    if room <= 0 { size } else { size + room.min(wanted.replicas - size) }
}

/// The old sets that shrink: first by their pods that are not available, which costs nothing, then by as many as can be missed.
pub(super) fn lowered(wanted: &Wanted, sets: &[Set], new: usize, keep_sick: bool) -> Vec<Resized> {
    let is_old = |(index, set): &(usize, &Set)| *index != new && set.size > 0;
    let mut old: Vec<(usize, Set)> =
        sets.iter().enumerate().filter(is_old).map(|(index, set)| (index, set.clone())).collect();
    let Some(newest) = sets.get(new).filter(|_| !old.is_empty()) else { return Vec::new() };
    let spare = total(sets) - wanted.least() - (newest.size - newest.available);
    if spare <= 0 {
        return Vec::new();
    }
    let before: Vec<i64> = old.iter().map(|(_, set)| set.size).collect();
    let mut cleaned = 0;
    let mut caught_up = true;
    for (_, set) in &mut old {
        if cleaned >= spare || keep_sick {
            break;
        }
        let sick = set.size - set.available;
        // One that counts more pods than it is to have has yet to shrink: nobody else does before it has.
        if sick < 0 {
            caught_up = false;
            break;
        }
        let less = sick.min(spare - cleaned);
        set.size -= less;
        cleaned += less;
    }
    let available: i64 = old.iter().map(|(_, set)| set.available).sum::<i64>() + newest.available;
    let mut left = if caught_up { available - wanted.least() } else { 0 };
    for (_, set) in &mut old {
        let less = set.size.min(left.max(0));
        set.size -= less;
        left -= less;
    }
    let changed = old.into_iter().zip(before).filter(|((_, set), before)| set.size != *before);
    changed.map(|((index, set), _)| (index, set.size)).collect()
}

/// The one set that takes the whole size: the only one that has any, or else the newest. None where several have some.
pub(super) fn sole(sets: &[Set], new: Option<usize>) -> Option<usize> {
    let mut active = sets.iter().enumerate().filter(|(_, set)| set.size > 0).map(|(index, _)| index);
    match (active.next(), active.next()) {
        (None, _) => new.or(sets.len().checked_sub(1)),
        (Some(only), None) => Some(only),
        (Some(_), Some(_)) => None,
    }
}

/// Whether the new set has all pods that the Deployment wants, and knows it.
pub(super) fn is_saturated(wanted: &Wanted, new: &Set) -> bool {
    [new.size, new.available].iter().all(|count| *count == wanted.replicas) && new.desired() == Some(wanted.replicas)
}

/// All sets with pods, each with its share of what a Deployment that was scaled half way has more or less room for.
pub(super) fn proportional(wanted: &Wanted, sets: &[Set], counted: i64) -> Vec<Resized> {
    let mut active: Vec<(usize, &Set)> = sets.iter().enumerate().filter(|(_, set)| set.size > 0).collect();
    let room = if wanted.replicas > 0 { wanted.most() } else { 0 };
    let change = room - total(sets);
    // From the largest on; of equal ones the youngest grows first and the oldest shrinks first.
    if change > 0 {
        active.reverse();
    }
    active.sort_by_key(|(_, set)| std::cmp::Reverse(set.size));
    let mut done = 0;
    let mut resized: Vec<Resized> = Vec::new();
    for (index, set) in active {
        let allowed = change - done;
        let share = match change {
            0 => 0,
            more if more > 0 => fraction(wanted, set, counted).min(allowed),
            _ => fraction(wanted, set, counted).max(allowed),
        };
        done += share;
        resized.push((index, set.size + share));
    }
    // What rounding has left over goes to the largest.
    if let Some((_, size)) = resized.first_mut() {
        *size = (*size + change - done).max(0);
    }
    resized
}

/// By how much a set would change if it kept its share of the Deployment.
fn fraction(wanted: &Wanted, set: &Set, counted: i64) -> i64 {
    if wanted.replicas == 0 {
        return -set.size;
    }
    let before = set.most().filter(|most| *most > 0).unwrap_or(counted);
    if before <= 0 {
        return 0;
    }
    // Rounded to the nearest, and a half upwards; nothing here is negative.
    (2 * set.size * wanted.most() + before) / (2 * before) - set.size
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn wanted(replicas: i64, surge: i64, unavailable: i64) -> Wanted {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        Wanted::of(&json!({"spec": {"replicas": replicas, "strategy": strategy}}))
    }

    /// Sets by size and available pods.
    fn sets(of: &[(i64, i64)]) -> Vec<Set> {
        let set = |(size, available): &(i64, i64)| -> Value {
            json!({"spec": {"replicas": size}, "status": {"replicas": size, "availableReplicas": available}})
        };
        of.iter().map(|it| Set::of(Arc::new(set(it)))).collect()
    }

    #[rstest]
    #[case::all_room(wanted(3, 1, 0), &[(3, 3), (0, 0)], 1)]
    #[case::no_room(wanted(3, 0, 1), &[(3, 3), (0, 0)], 0)]
    #[case::not_above_the_wanted(wanted(3, 3, 0), &[(1, 1), (0, 0)], 3)]
    fn the_new_set_grows_into_the_room_that_is_left(
        #[case] wanted: Wanted,
        #[case] of: &[(i64, i64)],
        #[case] size: i64,
    ) {
        assert_eq!(raised(&wanted, &sets(of), 0), size);
    }

    #[rstest]
    #[case::waits_for_the_new_pod(wanted(3, 1, 0), &[(3, 3), (1, 0)], &[])]
    #[case::one_for_one(wanted(3, 1, 0), &[(3, 3), (1, 1)], &[(0, 2)])]
    #[case::one_may_be_missing(wanted(3, 0, 1), &[(3, 3), (0, 0)], &[(0, 2)])]
    #[case::none_to_spare(wanted(3, 1, 0), &[(3, 2), (1, 0)], &[])]
    #[case::sick_ones_first(wanted(3, 1, 1), &[(1, 0), (2, 2), (1, 0)], &[(0, 0)])]
    #[case::nothing_new_is_up(wanted(10, 3, 2), &[(8, 7), (5, 0)], &[])]
    #[case::rolled_over(wanted(10, 3, 2), &[(8, 8), (5, 0), (0, 0)], &[(1, 0)])]
    #[case::has_not_caught_up(wanted(3, 1, 1), &[(2, 3), (1, 1)], &[])]
    fn old_sets_shrink_by_what_can_be_missed(
        #[case] wanted: Wanted,
        #[case] of: &[(i64, i64)],
        #[case] resized: &[Resized],
    ) {
        assert_eq!(lowered(&wanted, &sets(of), of.len() - 1, false), resized);
    }

    #[rstest]
    // 10 + 3 become 20 + 3: eight old ones and five new ones grow alike.
    #[case::up(wanted(20, 3, 2), &[(8, 13), (5, 13)], &[(0, 14), (1, 9)])]
    #[case::down(wanted(5, 3, 2), &[(8, 13), (5, 13)], &[(0, 5), (1, 3)])]
    #[case::to_none(wanted(0, 3, 2), &[(8, 13), (5, 13)], &[(0, 0), (1, 0)])]
    #[case::equal_ones_the_youngest_first(wanted(5, 0, 1), &[(2, 4), (2, 4)], &[(1, 3), (0, 2)])]
    #[case::equal_ones_the_oldest_first(wanted(3, 0, 1), &[(2, 4), (2, 4)], &[(0, 1), (1, 2)])]
    fn a_rollout_is_scaled_in_proportion(
        #[case] wanted: Wanted,
        #[case] of: &[(i64, i64)],
        #[case] resized: &[Resized],
    ) {
        let set = |(size, most): &(i64, i64)| -> Set {
            let most = json!({"deployment.kubernetes.io/max-replicas": most.to_string()});
            Set::of(Arc::new(json!({"metadata": {"annotations": most}, "spec": {"replicas": size}})))
        };
        assert_eq!(proportional(&wanted, &of.iter().map(set).collect::<Vec<Set>>(), 0), resized);
    }

    #[test]
    fn one_set_takes_it_all_unless_several_have_pods() {
        assert_eq!(sole(&sets(&[(0, 0), (3, 3)]), Some(0)), Some(1));
        assert_eq!(sole(&sets(&[(0, 0), (0, 0)]), Some(0)), Some(0));
        assert_eq!(sole(&sets(&[(0, 0), (0, 0)]), None), Some(1));
        assert_eq!(sole(&sets(&[(1, 0), (1, 0)]), None), None);
        assert_eq!(sole(&[], None), None);
    }
}
