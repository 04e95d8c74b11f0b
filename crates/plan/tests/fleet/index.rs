//! The index that takes events one by one is the one that is built from scratch.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use proptest::prelude::*;
use windlass_plan::{
    Fact,
    fleet::{Fence, Index, Item, ItemId, Lane, Progress, Room, Stamp, Terms, TierName, TierTerms},
};

use super::world::{V1, V2, at};

#[derive(Clone, Debug)]
enum Event {
    Observe(u8, Box<Item>),
    Forget(u8),
    Reserve(u8),
    Release(u8),
    Refuse(u8, String),
    Unsettle(u8),
    Advance(i64),
    Rebuild(Terms),
}

fn id(number: u8) -> ItemId {
    ItemId::new("clinic", number.to_string())
}

fn image() -> impl Strategy<Value = String> {
    prop_oneof![Just(V1.to_owned()), Just(V2.to_owned())]
}

fn progress() -> impl Strategy<Value = Fact<Progress>> {
    prop_oneof![
        Just(Fact::Known(Progress::Ready)),
        proptest::option::of(-300_i64..300).prop_map(|since| Fact::Known(Progress::Moving { since: since.map(at) })),
        Just(Fact::Known(Progress::Failed("it fell".into()))),
        Just(Fact::Unknown("nobody knows".into())),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    let stamp = (image(), -300_i64..300, 1_u32..5, any::<bool>()).prop_map(|(image, second, round, elsewhere)| Stamp {
        image,
        at: at(second),
        round,
        elsewhere,
    });
    let manual = prop_oneof![
        8 => Just(Fact::Known(false)),
        1 => Just(Fact::Known(true)),
        1 => Just(Fact::Unknown("no such key".into())),
    ];
    let flags = (any::<bool>(), any::<bool>(), manual);
    let place = (prop_oneof![Just(""), Just("a"), Just("z")], prop_oneof![Just(""), Just("n1"), Just("n2")], 0_u8..3);
    (place, proptest::option::of(image()), flags, progress(), proptest::option::of(stamp)).prop_map(
        |((tier, lane, uid), image, (deployed, failure_halts, manual), progress, stamp)| Item {
            fence: Fence { uid: format!("uid-{uid}"), resource_version: "1".into() },
            tier: tier.into(),
            lane: Lane(lane.into()),
            image,
            manual,
            deployed,
            failure_halts,
            progress,
            stamp,
            unready: None,
            set_by: None,
            taken_by: None,
        },
    )
}

fn terms() -> impl Strategy<Value = Terms> {
    let tier = (image(), 1_u64..400, proptest::option::of(-300_i64..300)).prop_map(|(image, deadline, begun)| {
        TierTerms { image, deadline: Duration::from_secs(deadline), started_at: begun.map(at) }
    });
    let name = prop_oneof![Just(TierName(String::new())), Just(TierName("a".into()))];
    (
        proptest::collection::btree_map(name, tier, 1..3),
        proptest::option::of(1_usize..3),
        proptest::option::of(-300_i64..300),
    )
        .prop_map(|(tiers, lane_limit, retried): (BTreeMap<_, _>, _, _)| Terms {
            tiers,
            lane_limit,
            retried_at: retried.map(at),
        })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0_u8..12, item()).prop_map(|(number, item)| Event::Observe(number, Box::new(item))),
        2 => (0_u8..12).prop_map(Event::Forget),
        2 => (0_u8..12).prop_map(Event::Reserve),
        2 => (0_u8..12).prop_map(Event::Release),
        2 => (-300_i64..600).prop_map(Event::Advance),
        1 => terms().prop_map(Event::Rebuild),
    ]
}

fn with_refusals() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => event(),
        1 => (0_u8..12, image()).prop_map(|(number, image)| Event::Refuse(number, image)),
        1 => (0_u8..12).prop_map(Event::Unsettle),
    ]
}

fn take(index: &mut Index, event: Event, terms: &mut Terms, now: &mut Timestamp) {
    match event {
        Event::Observe(number, item) => index.observe(&id(number), *item),
        Event::Forget(number) => index.forget(&id(number)),
        Event::Reserve(number) => index.reserve(&id(number)),
        Event::Release(number) => index.release(&id(number)),
        Event::Refuse(number, image) => index.refuse(&id(number), &image, "no".into(), *now),
        Event::Unsettle(number) => index.unsettle(&id(number)),
        Event::Advance(second) => {
            *now = at(second);
            index.advance(*now);
        }
        Event::Rebuild(other) => {
            *terms = other;
            index.rebuild(terms.clone(), *now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_by_one_is_the_same_as_from_scratch(first in terms(), events in proptest::collection::vec(event(), 1..80)) {
        let (mut terms, mut now) = (first.clone(), at(0));
        let mut index = Index::new(first, now);
        for event in events {
            take(&mut index, event, &mut terms, &mut now);
            let mut scratch = Index::new(terms.clone(), now);
            for id in index.reserved() {
                scratch.reserve(id);
            }
            for (id, item) in index.items() {
                scratch.observe(id, item.clone());
            }
            prop_assert_eq!(&index, &scratch);
        }
    }

    /// How often something was refused is told by nothing else, so that is kept, and everything else is made of the resources again.
    #[test]
    fn so_it_is_with_what_was_refused(first in terms(), events in proptest::collection::vec(with_refusals(), 1..80)) {
        let (mut terms, mut now) = (first.clone(), at(0));
        let mut index = Index::new(first, now);
        for event in events {
            take(&mut index, event, &mut terms, &mut now);
            let mut rebuilt = index.clone();
            rebuilt.rebuild(terms.clone(), now);
            prop_assert_eq!(&index, &rebuilt);
        }
    }

    #[test]
    fn what_is_taken_is_in_order_once_each_and_within_its_lane(
        terms in terms(), items in proptest::collection::vec(item(), 1..40), limit in 0_usize..30,
    ) {
        let mut index = Index::new(terms.clone(), at(0));
        for (number, mut item) in items.into_iter().enumerate() {
            item.fence.uid = format!("uid-{number}");
            index.observe(&ItemId::new("clinic", number.to_string()), item);
        }
        let (mut room, mut lanes) = (Room::of(index.lanes()), BTreeMap::<&Lane, usize>::new());
        for name in terms.tiers.keys() {
            let taken = index.tier(name).unwrap().take(limit, &mut room);
            prop_assert!(taken.len() <= limit);
            let ranks: Vec<_> = taken.iter().map(|id| (index.item(id).unwrap().rank(), id.clone())).collect();
            prop_assert!(ranks.is_sorted() && ranks.windows(2).all(|pair| pair[0] != pair[1]));
            for id in &taken {
                *lanes.entry(&index.item(id).unwrap().lane).or_default() += 1;
            }
        }
        for (lane, count) in lanes {
            prop_assert!(count <= index.lanes().room(lane));
        }
    }
}
