//! A file inside an image: found as a container sees it, and refused where there is any doubt.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    sync::atomic::Ordering,
};

use rstest::rstest;
use support::{Header, Image, Tar, gzip, names, refusal, zstd};
use windlass_images::{
    Digest,
    contents::{Class, Corruption, Error, ExtractedFile, Kind, Limits, Packing, RATIO_FREE, Refusal},
};

const PATH: &str = "/usr/bin/minio";
const FILE: &str = "usr/bin/minio";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The bytes at [`PATH`] of an image of these archives, lowest first; or why there are none.
fn taken(archives: &[Tar]) -> Result<Vec<u8>, Error> {
    let folder = folder();
    let mut image = Image::of(archives.iter().cloned().map(Tar::done));
    let result = image.take(PATH, folder.path());
    match &result {
        Ok(_) => assert_eq!(names(folder.path()), [".contents.json", "minio"]),
        Err(error) => {
            assert_eq!(names(folder.path()), [""; 0], "something is left behind");
            assert!(!error.next_step().is_empty());
        }
    }
    result.map(|_| fs::read(folder.path().join("minio")).unwrap())
}

fn file(bytes: &str) -> Tar {
    Tar::default().file(FILE, bytes.as_bytes())
}

fn missing(deleted: bool) -> Result<Vec<u8>, Error> {
    Err(Error::Missing { path: PATH.into(), deleted })
}

#[rstest]
fn every_packing_is_read(#[values(Packing::Plain, Packing::Gzip, Packing::Zstd)] packing: Packing) {
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(|number| (number * 7).to_le_bytes()).collect();
    let archive = Tar::default().folder("./usr/").folder("./usr/bin/").file("./usr/bin/minio", &bytes).done();
    let (folder, mut image) = (folder(), Image::default().layer(packing, &archive));
    let extracted = image.take(PATH, folder.path()).unwrap();
    let file = ExtractedFile { path: PATH.into(), size: bytes.len() as u64, digest: Digest::of(&bytes) };
    assert_eq!(extracted.files, [file]);
    assert_eq!((extracted.layers_read, extracted.reused), (1, false));
    assert_eq!(extracted.bytes_fetched, image.fetched.load(Ordering::Relaxed));
    let written = folder.path().join("minio");
    assert_eq!(fs::read(&written).unwrap(), bytes);
    assert_eq!(fs::metadata(&written).unwrap().mode() & 0o777, 0o644);
    let text = serde_json::to_string(&extracted).unwrap();
    assert_eq!(serde_json::from_str::<windlass_images::contents::Extracted>(&text).unwrap(), extracted, "{text}");
}

#[rstest]
#[case::in_the_only_layer(&[file("a")], Ok(b"a".to_vec()))]
#[case::the_topmost_wins(&[file("a"), file("b")], Ok(b"b".to_vec()))]
#[case::from_below(&[file("a"), Tar::default().file("usr/bin/mc", b"c")], Ok(b"a".to_vec()))]
#[case::empty(&[file("")], Ok(Vec::new()))]
#[case::nowhere(&[Tar::default().file("usr/bin/mc", b"c")], missing(false))]
#[case::no_layers(&[], missing(false))]
#[case::deleted(&[file("a"), Tar::default().file("usr/bin/.wh.minio", b"")], missing(true))]
#[case::deleted_and_made_again(
    &[file("a"), Tar::default().file("usr/bin/.wh.minio", b""), file("b")], Ok(b"b".to_vec())
)]
#[case::deleted_and_made_in_one_layer(
    &[file("a"), Tar::default().file("usr/bin/.wh.minio", b"").file(FILE, b"b")], Ok(b"b".to_vec())
)]
#[case::made_and_deleted_in_one_layer(
    &[file("a"), Tar::default().file(FILE, b"b").file("usr/bin/.wh.minio", b"")], Ok(b"b".to_vec())
)]
#[case::its_folder_deleted(&[file("a"), Tar::default().file("usr/.wh.bin", b"")], missing(true))]
#[case::its_folder_opaque(
    &[file("a"), Tar::default().folder("usr/bin/").file("usr/bin/.wh..wh..opq", b"")], missing(true)
)]
#[case::opaque_with_the_file(
    &[file("a"), Tar::default().file("usr/bin/.wh..wh..opq", b"").file(FILE, b"b")], Ok(b"b".to_vec())
)]
#[case::deleted_below_what_has_it(&[Tar::default().file("usr/bin/.wh.minio", b""), file("b")], Ok(b"b".to_vec()))]
#[case::a_folder_listed_again(&[file("a"), Tar::default().folder("usr/bin/")], Ok(b"a".to_vec()))]
fn a_file_is_what_a_container_sees(#[case] layers: &[Tar], #[case] expected: Result<Vec<u8>, Error>) {
    assert_eq!(taken(layers), expected);
}

#[test]
fn layers_below_the_one_that_settles_it_are_not_fetched() {
    let archives = [file("a"), file("b"), Tar::default().file("etc/x", b"")].map(Tar::done);
    let (folder, mut image) = (folder(), Image::of(archives));
    let extracted = image.take(PATH, folder.path()).unwrap();
    assert_eq!((extracted.layers_read, image.opened), (2, 2));
    assert_eq!(extracted.bytes_fetched, image.layers[1].size + image.layers[2].size);
    let mut deleted = Image::of([file("a"), Tar::default().file(".wh.usr", b"")].map(Tar::done));
    deleted.take(PATH, folder.path()).unwrap_err();
    assert_eq!(deleted.opened, 1);
}

#[test]
fn several_files_come_in_one_pass() {
    let lower = Tar::default().file(FILE, b"a").file("usr/bin/minio.minisig", b"old");
    let upper = Tar::default().file("usr/bin/minio.minisig", b"new");
    let (folder, mut image) = (folder(), Image::of([lower.done(), upper.done()]));
    let paths = ["/usr/bin/minio", "/usr/bin/minio.minisig"];
    let extracted = image.take_all(&paths, folder.path(), &Limits::default()).unwrap();
    assert_eq!(image.opened, 2);
    assert_eq!(extracted.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), paths);
    assert_eq!(fs::read(folder.path().join("minio.minisig")).unwrap(), b"new");
}

#[test]
fn all_files_come_or_none_does() {
    let (folder, mut image) = (folder(), Image::of([file("a").done()]));
    let paths = ["/usr/bin/minio", "/usr/bin/minio.minisig"];
    let error = image.take_all(&paths, folder.path(), &Limits::default()).unwrap_err();
    assert_eq!(error, Error::Missing { path: "/usr/bin/minio.minisig".into(), deleted: false });
    assert_eq!(names(folder.path()), [""; 0]);
}

#[rstest]
#[case::none(&[])]
#[case::two_of_one_name(&["/usr/bin/minio", "/opt/bin/minio"])]
fn paths_must_have_names_of_their_own(#[case] paths: &[&str]) {
    let error = Image::default().take_all(paths, folder().path(), &Limits::default()).unwrap_err();
    assert_eq!((error.class(), error), (Class::Invalid, Error::Names));
}

fn not_a_file(kind: Kind) -> Refusal {
    Refusal::NotAFile { path: PATH.into(), kind }
}

fn parent(kind: Kind) -> Refusal {
    Refusal::Parent { path: PATH.into(), kind }
}

#[rstest]
#[case::a_hard_link(FILE, b'1', not_a_file(Kind::HardLink))]
#[case::a_symbolic_link(FILE, b'2', not_a_file(Kind::SymbolicLink))]
#[case::a_character_device(FILE, b'3', not_a_file(Kind::Device))]
#[case::a_block_device(FILE, b'4', not_a_file(Kind::Device))]
#[case::a_folder(FILE, b'5', not_a_file(Kind::Folder))]
#[case::a_pipe(FILE, b'6', not_a_file(Kind::Fifo))]
#[case::a_folder_that_is_not_listed("usr/bin/minio/x", b'0', not_a_file(Kind::Folder))]
#[case::its_folder_is_a_link("usr/bin", b'2', parent(Kind::SymbolicLink))]
#[case::its_first_folder_is_a_link("usr", b'2', parent(Kind::SymbolicLink))]
#[case::its_folder_is_a_file("usr/bin", b'0', parent(Kind::File))]
#[case::the_file_again(FILE, b'0', Refusal::Twice { path: PATH.into() })]
#[case::the_file_again_in_other_words("./usr//bin/./minio", b'0', Refusal::Twice { path: PATH.into() })]
#[case::absolute("/usr/bin/mc", b'0', Refusal::AbsoluteName("\"/usr/bin/mc\"".into()))]
#[case::upwards("usr/../../etc/passwd", b'0', Refusal::UpwardName("\"usr/../../etc/passwd\"".into()))]
#[case::upwards_inside("usr/bin/../lib", b'5', Refusal::UpwardName("\"usr/bin/../lib\"".into()))]
#[case::a_deletion_of_nothing("usr/.wh.", b'0', Refusal::EmptyName("\"usr/.wh.\"".into()))]
#[case::a_deletion_upwards("usr/.wh...", b'0', Refusal::EmptyName("\"usr/.wh...\"".into()))]
#[case::no_name("", b'0', Refusal::EmptyName("\"\"".into()))]
#[case::a_file_at_the_top("./", b'0', Refusal::EmptyName("\"./\"".into()))]
#[case::a_global_header("x", b'g', Refusal::GlobalHeader)]
#[case::a_sparse_file("x", b'S', Refusal::Sparse)]
#[case::a_continuation("x", b'M', Refusal::UnknownKind('M'))]
fn what_is_no_plain_file_is_refused_by_name(
    #[case] name: &str,
    #[case] flag: u8,
    #[case] expected: Refusal,
    #[values(true, false)] after_the_file: bool,
) {
    let base = if after_the_file { file("a") } else { Tar::default() };
    let entry = |tar: Tar| tar.entry(name, flag, b"");
    let archive = if after_the_file { entry(base) } else { entry(base).file(FILE, b"a") };
    let found = refusal(taken(&[archive]).unwrap_err());
    // Where both are at one path, the second of them is one too many.
    let twice = Refusal::Twice { path: PATH.into() };
    assert!(found == expected || (after_the_file && found == twice && name == FILE), "{found:?}");
}

fn long(size: usize) -> String {
    format!("{}/{}", "d".repeat(100), "f".repeat(size))
}

#[rstest]
#[case::a_checksum_that_is_wrong({ let mut tar = file("a"); tar.0[0] ^= 1; tar }, Refusal::Checksum)]
#[case::a_header_cut_short({ let mut tar = file("a"); tar.0.truncate(1024 + 100); tar.0.extend([7; 100]); tar },
    Refusal::CutShort)]
#[case::a_size_that_is_no_number(
    Tar::default().raw(Header { name: b"x", size: b"0000000000x", ..Header::default() }, b""), Refusal::Number)]
#[case::two_numbers_in_a_size(
    Tar::default().raw(Header { name: b"x", size: b"0000 00001", ..Header::default() }, b""), Refusal::Number)]
#[case::a_negative_size(
    Tar::default().raw(Header { name: b"x", size: &[0xff; 12], ..Header::default() }, b""), Refusal::Number)]
#[case::a_size_beyond_all_bounds(
    Tar::default().raw(Header { name: b"x", size: &[0x80, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0], ..Header::default() }, b""),
    Refusal::Number)]
#[case::bytes_of_a_link(Tar::default().entry("x", b'2', b"abc"), Refusal::BytesOfNoFile(Kind::SymbolicLink))]
#[case::another_size_in_the_extension(
    Tar::default().pax(&[("size", "2")]).file("x", b"a"), Refusal::SizesDisagree { header: 1, extended: 2 })]
#[case::a_sparse_extension(Tar::default().pax(&[("GNU.sparse.size", "9")]).file("x", b"a"), Refusal::Sparse)]
#[case::two_extensions(Tar::default().pax(&[("path", "a")]).pax(&[("path", "b")]).file("x", b""), Refusal::Contradiction)]
#[case::an_extension_and_a_long_name(
    Tar::default().pax(&[("path", "a")]).entry("l", b'L', b"b\0").file("x", b""), Refusal::Contradiction)]
#[case::an_extension_of_nothing(Tar::default().pax(&[("path", "a")]), Refusal::Contradiction)]
#[case::an_extension_that_is_garbled(Tar::default().entry("x", b'x', b"garbled"), Refusal::ExtendedHeader)]
#[case::a_nul_in_a_name(Tar::default().pax(&[("path", "usr/bin/minio\0x")]).file("x", b""),
    Refusal::NulInName("\"usr/bin/minio\\0x\"".into()))]
#[case::upwards_in_an_extension(Tar::default().pax(&[("path", "../x")]).file("x", b""),
    Refusal::UpwardName("\"../x\"".into()))]
#[case::upwards_in_a_long_name(Tar::default().entry("l", b'L', b"../x\0").file("x", b""),
    Refusal::UpwardName("\"../x\"".into()))]
#[case::a_name_that_is_too_long(Tar::default().pax(&[("path", &long(256))]).file("x", b""),
    Refusal::LongName(format!("\"{}\"", "d".repeat(100))))]
#[case::another_programs_header(
    Tar::default().raw(Header { name: b"x", trailer: b"tar\0", ..Header::default() }, b""), Refusal::UnknownKind('s'))]
#[case::more_after_the_end({ let mut tar = Tar(Tar::default().done()); tar.0.extend(file("a").0); tar },
    Refusal::AfterEnd)]
#[case::more_after_one_empty_block({ let mut tar = Tar(vec![0; 512]); tar.0.extend(file("a").0); tar },
    Refusal::AfterEnd)]
fn what_could_be_read_in_two_ways_is_refused(#[case] archive: Tar, #[case] expected: Refusal) {
    let bytes = if expected == Refusal::CutShort { archive.0 } else { archive.done() };
    let mut image = Image::of([bytes]);
    assert_eq!(refusal(image.take(PATH, folder().path()).unwrap_err()), expected);
}

#[rstest]
#[case::an_extended_header(Tar::default().pax(&[("mtime", "1.5"), ("path", FILE)]).file("usr/bin/m", b"a"))]
#[case::a_size_in_it(Tar::default().pax(&[("size", "1")]).file(FILE, b"a"))]
#[case::a_long_name(Tar::default().entry("././@LongLink", b'L', b"usr/bin/minio\0").file("usr/b", b"a"))]
#[case::a_long_link_before(
    Tar::default().entry("././@LongLink", b'K', b"y\0").entry("x", b'2', b"").file(FILE, b"a"))]
#[case::the_prefix_of_posix(Tar::default()
    .raw(Header { name: b"minio", prefix: b"usr/bin", size: b"1", ..Header::default() }, b"a"))]
#[case::no_prefix_of_gnu(Tar::default()
    .raw(Header { name: FILE.as_bytes(), prefix: b"junk", magic: b"ustar  \0", size: b"1", ..Header::default() }, b"a"))]
#[case::the_oldest_form(Tar::default()
    .raw(Header { name: b"usr/", flag: 0, magic: b"", ..Header::default() }, b"")
    .raw(Header { name: FILE.as_bytes(), flag: 0, magic: b"", size: b"     1 ", ..Header::default() }, b"a"))]
#[case::a_binary_size(Tar::default()
    .raw(Header { name: FILE.as_bytes(), size: &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], ..Header::default() }, b"a"))]
fn what_tools_write_is_read(#[case] archive: Tar) {
    assert_eq!(taken(std::slice::from_ref(&archive)), Ok(b"a".to_vec()));
    // And without the empty blocks at the end.
    let (folder, mut image) = (folder(), Image::of([archive.0]));
    image.take(PATH, folder.path()).unwrap();
}

#[rstest]
#[case::one_byte_missing(|archive: &mut Vec<u8>| { archive.pop(); }, false)]
#[case::one_byte_more(|archive: &mut Vec<u8>| archive.push(0), true)]
#[case::one_bit(|archive: &mut Vec<u8>| archive[600] ^= 1, true)]
#[case::a_bit_after_the_file(|archive: &mut Vec<u8>| *archive.last_mut().unwrap() ^= 1, true)]
#[case::garbled_from_the_start(|archive: &mut Vec<u8>| archive[0] ^= 1, true)]
fn other_bytes_than_the_manifest_names_are_noticed(#[case] change: fn(&mut Vec<u8>), #[case] is_corrupt: bool) {
    let archive = file("a").done();
    let (folder, mut sent) = (folder(), archive.clone());
    change(&mut sent);
    let error = Image::of([archive]).sends(0, sent).take(PATH, folder.path()).unwrap_err();
    // What is cut short may be the network's fault; what is different is not.
    assert_eq!(error.class(), if is_corrupt { Class::Corrupt } else { Class::Source }, "{error}");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_layer_that_lacks_the_file_is_believed_only_if_it_is_the_right_one() {
    let upper = Tar::default().file("usr/bin/.wh.minio", b"").done();
    let other = Tar::default().file("usr/bin/.xx.minio", b"").done();
    let error = Image::of([file("a").done(), upper]).sends(1, other).take(PATH, folder().path()).unwrap_err();
    assert_eq!(error.class(), Class::Corrupt);
}

#[test]
fn another_archive_than_the_config_names_is_noticed() {
    let (archive, other) = (file("a").done(), Digest::of(b"other"));
    let mut image = Image::default().blob(Packing::Gzip, gzip(&archive), other.clone());
    let corruption = Corruption::DiffId { wanted: other, found: Digest::of(&archive) };
    let layer = image.layers[0].digest.clone();
    assert_eq!(image.take(PATH, folder().path()), Err(Error::Corrupt { layer, corruption }));
}

/// A frame that zstd skips.
fn skippable(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [&[0x53, 0x2a, 0x4d, 0x18], &length[..], bytes].concat()
}

/// Halves that are packed apart.
fn halves(pack: fn(&[u8]) -> Vec<u8>, between: &[u8]) -> Vec<u8> {
    let archive = file("a").done();
    let (first, second) = archive.split_at(700);
    [pack(first), between.to_vec(), pack(second)].concat()
}

#[rstest]
#[case::gzip_in_members(Packing::Gzip, halves(gzip, b""))]
#[case::zstd_in_frames(Packing::Zstd, halves(zstd, b""))]
#[case::zstd_with_what_is_skipped(Packing::Zstd, halves(zstd, &skippable(b"table of contents")))]
fn several_parts_are_one_stream(#[case] packing: Packing, #[case] blob: Vec<u8>) {
    let mut image = Image::default().blob(packing, blob, Digest::of(&file("a").done()));
    image.take(PATH, folder().path()).unwrap();
}

#[rstest]
#[case::gzip_with_garbage_behind(Packing::Gzip, [gzip(&file("a").done()), b"garbage".to_vec()].concat())]
#[case::gzip_with_zeros_behind(Packing::Gzip, [gzip(&file("a").done()), vec![0; 512]].concat())]
#[case::gzip_cut_short(Packing::Gzip, { let mut blob = gzip(&file("a").done()); blob.truncate(blob.len() - 1); blob })]
#[case::gzip_of_nothing(Packing::Gzip, Vec::new())]
#[case::zstd_of_nothing(Packing::Zstd, Vec::new())]
#[case::gzip_that_is_none(Packing::Gzip, file("a").done())]
#[case::zstd_with_garbage_behind(Packing::Zstd, [zstd(&file("a").done()), b"garbage".to_vec()].concat())]
#[case::zstd_cut_short(Packing::Zstd, { let mut blob = zstd(&file("a").done()); blob.truncate(blob.len() - 1); blob })]
#[case::zstd_that_skips_too_far(Packing::Zstd, [zstd(&file("a").done()), skippable(b"abc")[..9].to_vec()].concat())]
#[case::zstd_whose_checksum_is_wrong(
    Packing::Zstd, { let mut blob = zstd(&file("a").done()); *blob.last_mut().unwrap() ^= 1; blob })]
// A frame's header alone: the window would be 2 GiB.
#[case::zstd_that_looks_back_too_far(Packing::Zstd, vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0, 0, 0])]
fn what_is_not_packed_as_it_should_be_is_refused(#[case] packing: Packing, #[case] blob: Vec<u8>) {
    let mut image = Image::default().blob(packing, blob, Digest::of(&file("a").done()));
    let found = refusal(image.take(PATH, folder().path()).unwrap_err());
    assert!(matches!(found, Refusal::Packing { .. }), "{found:?}");
}

#[rstest]
#[case::entries(Limits { entries: 1, ..Limits::default() }, Refusal::TooManyEntries(1))]
#[case::a_file(Limits { file: 3, ..Limits::default() }, Refusal::FileTooLarge { path: PATH.into(), size: 4, limit: 3 })]
#[case::unpacked(Limits { unpacked: 2047, ..Limits::default() }, Refusal::TooManyBytes(2047))]
fn everything_has_a_bound(#[case] limits: Limits, #[case] expected: Refusal) {
    let mut image = Image::of([Tar::default().folder("usr/").file(FILE, b"abcd").done()]);
    assert_eq!(refusal(image.take_all(&[PATH], folder().path(), &limits).unwrap_err()), expected);
}

#[rstest]
fn a_bomb_is_refused(#[values(Packing::Gzip, Packing::Zstd)] packing: Packing) {
    let size = usize::try_from(RATIO_FREE).unwrap();
    let archive = Tar::default().file("zeros", &vec![0; size]).file(FILE, b"a").done();
    let (folder, limits) = (folder(), Limits::default());
    let mut image = Image::default().layer(packing, &archive);
    // Empty space that is merely large is not unusual, in an image that is large as well.
    let within = Limits { ratio: RATIO_FREE / image.layers[0].size + 2, ..limits };
    let found = refusal(image.take_all(&[PATH], folder.path(), &limits).unwrap_err());
    assert_eq!(found, Refusal::TooManyBytes(RATIO_FREE));
    image.take_all(&[PATH], folder.path(), &within).unwrap();
}

#[test]
fn an_extension_has_a_bound() {
    let header = Header { name: b"x", flag: b'x', size: b"00004000001", ..Header::default() };
    let error = Image::of([Tar::default().raw(header, b"").done()]).take(PATH, folder().path()).unwrap_err();
    assert_eq!(refusal(error), Refusal::ExtensionTooLarge { size: (1 << 20) + 1, limit: 1 << 20 });
}

#[test]
fn what_is_complete_is_read_again_and_reused() {
    let (folder, mut image) = (folder(), Image::of([file("a").done()]));
    let first = image.take(PATH, folder.path()).unwrap();
    let second = image.take(PATH, folder.path()).unwrap();
    assert_eq!((second.files, second.reused, image.opened), (first.files, true, 1));
}

#[rstest]
#[case::other_bytes(|folder: &std::path::Path| fs::write(folder.join("minio"), "b").unwrap())]
#[case::a_cut_file(|folder: &std::path::Path| fs::write(folder.join("minio"), "").unwrap())]
#[case::no_file(|folder: &std::path::Path| fs::remove_file(folder.join("minio")).unwrap())]
#[case::a_link(|folder: &std::path::Path| {
    fs::rename(folder.join("minio"), folder.join("real")).unwrap();
    symlink(folder.join("real"), folder.join("minio")).unwrap();
})]
#[case::no_record(|folder: &std::path::Path| fs::remove_file(folder.join(".contents.json")).unwrap())]
#[case::a_garbled_record(|folder: &std::path::Path| fs::write(folder.join(".contents.json"), "{").unwrap())]
fn what_is_not_what_it_was_is_made_again(#[case] change: fn(&std::path::Path)) {
    let (folder, mut image) = (folder(), Image::of([file("a").done()]));
    image.take(PATH, folder.path()).unwrap();
    change(folder.path());
    assert!(!image.take(PATH, folder.path()).unwrap().reused);
    assert_eq!(fs::read(folder.path().join("minio")).unwrap(), b"a");
    assert!(fs::symlink_metadata(folder.path().join("minio")).unwrap().is_file());
}

#[test]
fn files_of_another_image_are_not_reused() {
    let folder = folder();
    Image::of([file("a").done()]).take(PATH, folder.path()).unwrap();
    let error = Image::of([Tar::default().done()]).take(PATH, folder.path()).unwrap_err();
    assert_eq!(error.class(), Class::Missing);
    assert_eq!(names(folder.path()), [""; 0], "the old file would be taken for the new image's");
}

#[test]
fn what_an_attempt_left_unfinished_is_removed() {
    let folder = folder();
    fs::write(folder.path().join(".contents-x.partial"), "half").unwrap();
    fs::write(folder.path().join("somebody-elses"), "whole").unwrap();
    Image::of([file("a").done()]).take(PATH, folder.path()).unwrap();
    assert_eq!(names(folder.path()), [".contents.json", "minio", "somebody-elses"]);
}

#[test]
fn a_folder_that_is_not_there_is_the_stores_trouble() {
    let error = Image::of([file("a").done()]).take(PATH, "/nowhere/at/all".as_ref()).unwrap_err();
    assert_eq!(error.class(), Class::Store);
}

#[rstest]
#[case("application/vnd.oci.image.layer.v1.tar", Some(Packing::Plain))]
#[case("application/vnd.oci.image.layer.v1.tar+gzip", Some(Packing::Gzip))]
#[case("application/vnd.oci.image.layer.v1.tar+zstd", Some(Packing::Zstd))]
#[case("application/vnd.docker.image.rootfs.diff.tar.gzip", Some(Packing::Gzip))]
#[case("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", None)]
#[case("application/vnd.oci.image.layer.v1.tar+gzip+encrypted", None)]
fn a_media_type_says_how_a_layer_is_packed(#[case] media_type: &str, #[case] expected: Option<Packing>) {
    assert_eq!(Packing::of_media_type(media_type), expected);
}

/// Each bug, and one of the tests above that it breaks.
#[cfg(feature = "seeded-bugs")]
mod bugs {
    use windlass_plan::bug::Bug;

    use super::*;

    #[rstest]
    #[case::a_file_deleted(&[file("a"), Tar::default().file("usr/bin/.wh.minio", b"")])]
    #[case::its_folder_opaque(&[file("a"), Tar::default().file("usr/bin/.wh..wh..opq", b"")])]
    fn deletions_that_are_ignored_are_caught(#[case] layers: &[Tar]) {
        support::caught(Bug::WhiteoutIgnored, || a_file_is_what_a_container_sees(layers, missing(true)));
    }

    #[rstest]
    #[case::the_file(FILE, b'2', not_a_file(Kind::SymbolicLink))]
    #[case::a_hard_link(FILE, b'1', not_a_file(Kind::HardLink))]
    #[case::its_folder("usr/bin", b'2', parent(Kind::SymbolicLink))]
    fn links_that_are_followed_are_caught(#[case] name: &str, #[case] flag: u8, #[case] expected: Refusal) {
        support::caught(Bug::LinkFollowed, || {
            what_is_no_plain_file_is_refused_by_name(name, flag, expected.clone(), false);
        });
    }

    #[rstest]
    #[case::other_bytes(|| other_bytes_than_the_manifest_names_are_noticed(|archive| archive[600] ^= 1, true))]
    #[case::a_layer_that_lacks_the_file(a_layer_that_lacks_the_file_is_believed_only_if_it_is_the_right_one)]
    #[case::another_archive(another_archive_than_the_config_names_is_noticed)]
    fn layers_that_are_not_hashed_are_caught(#[case] test: fn()) {
        support::caught(Bug::LayerNotHashed, test);
    }
}
