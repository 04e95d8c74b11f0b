//! Blobs that are whole, cut, wrong, too short and too long.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures::StreamExt;
use rstest::rstest;
use windlass_images::{
    Digest, RegistryError,
    document::{CONFIG_LIMIT, Document},
    registry::{Class, Credentials, Failure},
};

use crate::world::{Heard, Piece, Reply, World, location, run};

const BLOB: &[u8] = b"all of this and nothing else";

/// What was handed on, and how it ended.
fn read(world: &Arc<World>) -> (Vec<u8>, Result<(), RegistryError>) {
    run(async {
        let size = u64::try_from(BLOB.len()).unwrap();
        let mut blob = world.registry(Credentials::none()).blob(&location("registry.test/a"), &Digest::of(BLOB), size);
        let mut bytes = Vec::new();
        while let Some(piece) = blob.next().await {
            match piece {
                Ok(piece) => bytes.extend_from_slice(&piece),
                Err(error) => return (bytes, Err(error)),
            }
        }
        (bytes, Ok(()))
    })
}

fn pieces(pieces: &[&'static [u8]]) -> Reply {
    pieces.iter().fold(Reply::status(200), |reply, piece| reply.piece(Piece::Bytes(Bytes::from_static(piece))))
}

/// From which byte on a request wants it.
fn from(heard: &Heard) -> usize {
    heard.header("range").map_or(0, |range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap())
}

fn partial(first: usize, bytes: &[u8]) -> Reply {
    let range = format!("bytes {first}-{}/{}", BLOB.len() - 1, BLOB.len());
    Reply::status(206).with("content-range", range).piece(Piece::Bytes(Bytes::copy_from_slice(bytes)))
}

#[rstest]
#[case::in_one_piece(pieces(&[BLOB]))]
#[case::in_several(pieces(&[&BLOB[..5], b"", &BLOB[5..9], &BLOB[9..]]))]
#[case::with_its_length(pieces(&[BLOB]).with("content-length", BLOB.len().to_string()))]
#[case::with_a_connection_that_breaks_at_the_end(pieces(&[BLOB]).piece(Piece::Cut))]
fn a_blob_is_read(#[case] reply: Reply) {
    let world = World::new(move |_| reply.clone());
    let (bytes, end) = read(&world);
    assert_eq!((bytes.as_slice(), end), (BLOB, Ok(())));
    assert_eq!(world.asked(), [format!("registry.test/v2/a/blobs/{}", Digest::of(BLOB))]);
}

/// The seeded bug SizeUnbounded must break this.
pub fn nothing_past_its_size_is_handed_on() {
    let endless = Reply::status(200).piece(Piece::Bytes(Bytes::from_static(BLOB)));
    let more = endless.piece(Piece::Bytes(Bytes::from_static(b"more")));
    let said = pieces(&[BLOB, b"more"]).with("content-length", (BLOB.len() + 4).to_string());
    for reply in [more, said, pieces(&[&BLOB[..9], &[b'x'; 100]])] {
        let world = World::new(move |_| reply.clone());
        let (bytes, end) = read(&world);
        assert!(bytes.len() < BLOB.len(), "a reader got {} bytes", bytes.len());
        assert!(matches!(end.unwrap_err().failure(), Failure::TooLong { .. }));
    }
}

#[test]
fn a_blob_that_goes_on_is_cut_off() {
    nothing_past_its_size_is_handed_on();
}

#[rstest]
#[case::as_it_comes(pieces(&[&BLOB[..9]]))]
#[case::as_it_says(pieces(&[&BLOB[..9]]).with("content-length", "9"))]
#[case::nothing(Reply::status(200))]
fn a_blob_that_ends_too_early_is_an_error(#[case] reply: Reply) {
    let world = World::new(move |_| reply.clone());
    let error = read(&world).1.unwrap_err();
    assert!(matches!(error.failure(), Failure::TooShort { .. }), "{error}");
    assert_eq!((error.class(), world.heard().len()), (Class::Corrupt, 1));
}

#[test]
fn of_wrong_bytes_the_last_are_never_handed_on() {
    let mut wrong = BLOB.to_vec();
    wrong[3] ^= 1;
    let world = World::new(move |_| {
        let (first, last) = wrong.split_at(20);
        let reply = Reply::status(200).piece(Piece::Bytes(Bytes::copy_from_slice(first)));
        reply.piece(Piece::Bytes(Bytes::copy_from_slice(last)))
    });
    let (bytes, end) = read(&world);
    assert_eq!(bytes.len(), 20);
    assert!(matches!(end.unwrap_err().failure(), Failure::Wrong(_)));
}

#[rstest]
#[case::the_rest(|first: usize| partial(first, &BLOB[first..]))]
#[case::all_of_it_again(|_| Reply::ok(BLOB))]
#[case::all_of_it_again_in_pieces(|_| pieces(&[&BLOB[..3], &BLOB[3..12], &BLOB[12..]]))]
fn a_cut_connection_is_taken_up_again(#[case] second: fn(usize) -> Reply) {
    let world = World::new(move |heard| match from(heard) {
        0 => pieces(&[&BLOB[..4], &BLOB[4..9]]).piece(Piece::Cut),
        first => second(first),
    });
    let (bytes, end) = read(&world);
    assert_eq!((bytes.as_slice(), end), (BLOB, Ok(())));
    assert_eq!(world.heard()[1].header("range"), Some("bytes=9-"));
    assert_eq!(world.heard().len(), 2);
}

#[test]
fn a_registry_may_be_gone_for_a_moment() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let world = World::new(move |heard| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => pieces(&[&BLOB[..9]]).piece(Piece::Cut),
        1 => Reply::Refusing,
        2 => Reply::status(502),
        _ => partial(from(heard), &BLOB[from(heard)..]),
    });
    let (bytes, end) = read(&world);
    assert_eq!((bytes.as_slice(), end), (BLOB, Ok(())));
    assert_eq!(tries.load(Ordering::Relaxed), 4);
}

#[test]
fn other_bytes_the_second_time_are_found_out() {
    // What was handed on is wrong, what comes the second time is right from its first byte on: together they are nothing.
    let world = World::new(move |heard| match from(heard) {
        0 => pieces(&[b"ALL OF"]).piece(Piece::Cut),
        _ => Reply::ok(BLOB),
    });
    let (bytes, end) = read(&world);
    assert_eq!(bytes, b"ALL OF");
    assert!(matches!(end.unwrap_err().failure(), Failure::Wrong(_)));
}

#[rstest]
#[case::another_range(|_| partial(2, &BLOB[2..]))]
#[case::no_range(|first: usize| Reply::status(206).piece(Piece::Bytes(Bytes::from_static(&BLOB[first..]))))]
#[case::another_success(|_| Reply::status(204))]
fn a_range_that_was_not_asked_for_is_refused(#[case] second: fn(usize) -> Reply) {
    let world = World::new(move |heard| match from(heard) {
        0 => pieces(&[&BLOB[..9]]).piece(Piece::Cut),
        first => second(first),
    });
    assert!(matches!(read(&world).1.unwrap_err().failure(), Failure::Garbled(_)));
}

#[test]
fn a_range_is_not_taken_where_none_was_asked_for() {
    let world = World::new(move |_| partial(0, BLOB));
    assert_eq!(read(&world).1.unwrap_err().class(), Class::Corrupt);
}

#[rstest]
#[case::cut(Piece::Cut)]
#[case::silent(Piece::Silence)]
fn it_is_not_taken_up_for_ever(#[case] ending: Piece) {
    let world = World::new(move |_| Reply::status(200).piece(ending.clone()));
    assert_eq!(read(&world).1.unwrap_err().class(), Class::Silent);
    assert_eq!(world.heard().len(), 1 + 5);
}

#[test]
fn a_registry_that_has_no_time_is_not_pressed() {
    let world = World::new(|heard| match from(heard) {
        0 => pieces(&[&BLOB[..9]]).piece(Piece::Cut),
        _ => Reply::status(429).with("retry-after", "3"),
    });
    assert_eq!(read(&world).1.unwrap_err().class(), Class::Busy);
    assert_eq!(world.heard().len(), 2);
}

#[rstest]
#[case::empty(b"", None)]
#[case::not_empty(b"x", Some(Class::Corrupt))]
fn an_empty_blob_is_one_too(#[case] body: &'static [u8], #[case] expected: Option<Class>) {
    let world = World::new(move |_| Reply::ok(body));
    let found = run(async {
        let blob = world.registry(Credentials::none()).blob(&location("registry.test/a"), &Digest::of(b""), 0);
        blob.collect::<Vec<_>>().await
    });
    assert_eq!(found.first().map(|first| first.as_ref().unwrap_err().class()), expected);
}

#[test]
fn a_configuration_is_read_and_one_that_is_too_long_is_not_even_asked_for() {
    let config = r#"{"os":"linux","architecture":"arm64","rootfs":{"type":"layers","diff_ids":[]}}"#;
    let world = World::new(move |_| Reply::ok(config));
    let manifest = |size: usize| {
        let digest = Digest::of(config.as_bytes());
        let text = format!(
            r#"{{"schemaVersion":2,"layers":[],"config":{{"mediaType":"x","digest":"{digest}","size":{size}}}}}"#
        );
        Document::read(text.as_bytes()).unwrap().manifest().unwrap().config.clone()
    };
    let registry = world.registry(Credentials::none());
    let found = run(registry.config(&location("registry.test/a"), &manifest(config.len()))).unwrap();
    assert_eq!(found.platform.to_string(), "linux/arm64");
    let error = run(registry.config(&location("registry.test/a"), &manifest(CONFIG_LIMIT + 1))).unwrap_err();
    assert_eq!((error.class(), world.heard().len()), (Class::Corrupt, 1));
}
