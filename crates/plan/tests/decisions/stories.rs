//! Stories that nobody thought of, in both orders: the world objects to every step that is out of order.

use crate::support::world::{RANDOM_STORIES, random_story};

#[test]
fn whatever_happens_nobody_is_hurt_and_it_comes_to_an_end() {
    (0..RANDOM_STORIES).for_each(random_story);
}
