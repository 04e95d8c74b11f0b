//! The entries of an archive, read strictly: what could be read in two ways is refused.
//!
//! Known are the headers of V7, POSIX and GNU, extended headers, and GNU's long names: what the tools that build images write. Names and sizes are
//! read, and nothing else matters here.

use std::io::Read;

use super::{
    error::{Error, Kind, Refusal},
    path::{NAME_LIMIT, PATH_LIMIT, WHITEOUT},
    pax::Pax,
    stream::{BUFFER, Unpacked},
};

const BLOCK: usize = 512;

/// The longest extended header. Attributes of a file are in it, which may be long.
const EXTENSION_LIMIT: u64 = 1 << 20;

/// What fits into a header's field for the size; only beyond that may it differ from the extended header's.
const OCTAL_LIMIT: u64 = 1 << 33;

/// An entry, without its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The parts of its name, without those that mean nothing.
    pub(super) name: Vec<Vec<u8>>,
    pub(super) kind: Kind,
    pub(super) size: u64,
}

pub(super) struct Archive<'a, 'b, S> {
    source: &'a mut Unpacked<'b, S>,
    entries: u64,
    limit: u64,
    buffer: Vec<u8>,
}

/// What came before a header and is meant for it.
#[derive(Default)]
struct Extensions {
    pax: Option<Pax>,
    long_name: Option<Vec<u8>>,
    long_link: bool,
}

impl Extensions {
    fn any(&self) -> bool {
        self.pax.is_some() || self.long_name.is_some() || self.long_link
    }
}

impl<'a, 'b, S: Read> Archive<'a, 'b, S> {
    pub(super) fn new(source: &'a mut Unpacked<'b, S>, limit: u64) -> Self {
        Self { source, entries: 0, limit, buffer: vec![0; BUFFER] }
    }

    /// The next entry; none at the end. The bytes of the one before must have been taken.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Refusal> {
        let mut extensions = Extensions::default();
        loop {
            let Some(header) = self.header()? else {
                return if extensions.any() { Err(Refusal::Contradiction) } else { Ok(None) };
            };
            // Extensions count, too: nothing in an archive is for free.
            self.entries += 1;
            if self.entries > self.limit {
                return Err(Refusal::TooManyEntries(self.limit));
            }
            let fresh = match header.flag() {
                b'x' => extensions.pax.replace(Pax::parse(&self.extension(&header)?)?).is_none(),
                b'L' => extensions.long_name.replace(text(&self.extension(&header)?).to_vec()).is_none(),
                // Links are not followed, so what they lead to does not matter.
                b'K' => {
                    self.extension(&header)?;
                    !std::mem::replace(&mut extensions.long_link, true)
                }
                b'g' => return Err(Refusal::GlobalHeader),
                b'S' => return Err(Refusal::Sparse),
                flag => return header.entry(flag, extensions).map(Some),
            };
            if !fresh {
                return Err(Refusal::Contradiction);
            }
        }
    }

    /// Hands the bytes of an entry on, piece by piece.
    pub(super) fn contents(
        &mut self,
        entry: &Entry,
        refused: impl Fn(Refusal) -> Error,
        mut take: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut left = entry.size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(BUFFER);
            let piece = self.buffer.get_mut(..most).unwrap_or_default();
            let read = self.source.read(piece).map_err(&refused)?;
            if read == 0 {
                return Err(refused(Refusal::CutShort));
            }
            take(piece.get(..read).unwrap_or_default())?;
            left = left.saturating_sub(read as u64);
        }
        self.padding(entry.size).map_err(refused)
    }

    /// A header; none at the archive's end.
    fn header(&mut self) -> Result<Option<Header>, Refusal> {
        let mut block = [0; BLOCK];
        match self.fill(&mut block)? {
            // Many leave out the two empty blocks that should be there.
            0 => return Ok(None),
            BLOCK => {}
            _ => return Err(Refusal::CutShort),
        }
        if block.iter().all(|byte| *byte == 0) {
            self.only_zeros()?;
            return Ok(None);
        }
        let header = Header(block);
        header.check_sum()?;
        Ok(Some(header))
    }

    /// After the end there is padding, and nothing that another reader could take for more entries.
    fn only_zeros(&mut self) -> Result<(), Refusal> {
        loop {
            let read = self.source.read(&mut self.buffer)?;
            if read == 0 {
                return Ok(());
            }
            if self.buffer.iter().take(read).any(|byte| *byte != 0) {
                return Err(Refusal::AfterEnd);
            }
        }
    }

    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, Refusal> {
        let size = header.size()?;
        if size > EXTENSION_LIMIT {
            return Err(Refusal::ExtensionTooLarge { size, limit: EXTENSION_LIMIT });
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
        if self.fill(&mut bytes)? < bytes.len() {
            return Err(Refusal::CutShort);
        }
        self.padding(size)?;
        Ok(bytes)
    }

    fn padding(&mut self, size: u64) -> Result<(), Refusal> {
        let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
        let mut rest = [0; BLOCK];
        let rest = rest.get_mut(..(BLOCK - over) % BLOCK).unwrap_or_default();
        if self.fill(rest)? < rest.len() { Err(Refusal::CutShort) } else { Ok(()) }
    }

    /// Reads until there is no room, or nothing more; how much that was.
    fn fill(&mut self, mut room: &mut [u8]) -> Result<usize, Refusal> {
        let mut filled = 0;
        while !room.is_empty() {
            let read = self.source.read(room)?;
            if read == 0 {
                break;
            }
            filled += read;
            room = room.get_mut(read..).unwrap_or_default();
        }
        Ok(filled)
    }
}

struct Header([u8; BLOCK]);

impl Header {
    fn check_sum(&self) -> Result<(), Refusal> {
        // The sum's own field counts as spaces.
        let own = 148..156;
        let counted = |(at, byte): (usize, &u8)| u64::from(if own.contains(&at) { b' ' } else { *byte });
        let sum: u64 = self.0.iter().enumerate().map(counted).sum();
        if octal(self.field(148, 8))? == sum { Ok(()) } else { Err(Refusal::Checksum) }
    }

    fn field(&self, at: usize, length: usize) -> &[u8] {
        self.0.get(at..at + length).unwrap_or_default()
    }

    fn flag(&self) -> u8 {
        self.0.get(156).copied().unwrap_or_default()
    }

    fn size(&self) -> Result<u64, Refusal> {
        number(self.field(124, 12))
    }

    /// The name as the header alone has it. GNU's headers have other things where POSIX has the first half of a long name.
    fn name(&self) -> Result<Vec<u8>, Refusal> {
        let name = text(self.field(0, 100));
        if self.field(257, 6) != b"ustar\0" {
            return Ok(name.to_vec());
        }
        // Another program's variant, with a shorter field for that half.
        if self.field(508, 4) == b"tar\0" {
            return Err(Refusal::UnknownKind('s'));
        }
        let prefix = text(self.field(345, 155));
        Ok(if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() })
    }

    fn entry(&self, flag: u8, extensions: Extensions) -> Result<Entry, Refusal> {
        let Extensions { pax, long_name, long_link: _ } = extensions;
        let pax = pax.unwrap_or_default();
        let written = match (pax.path, long_name) {
            (Some(_), Some(_)) => return Err(Refusal::Contradiction),
            (Some(name), None) | (None, Some(name)) => name,
            (None, None) => self.name()?,
        };
        let header = self.size()?;
        let size = match pax.size {
            Some(extended) if extended != header && extended < OCTAL_LIMIT => {
                return Err(Refusal::SizesDisagree { header, extended });
            }
            Some(extended) => extended,
            None => header,
        };
        let kind = match flag {
            // From before there were folders in archives.
            0 if written.ends_with(b"/") => Kind::Folder,
            0 | b'0' | b'7' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::SymbolicLink,
            b'3' | b'4' => Kind::Device,
            b'5' => Kind::Folder,
            b'6' => Kind::Fifo,
            other => return Err(Refusal::UnknownKind(char::from(other))),
        };
        if kind != Kind::File && size > 0 {
            return Err(Refusal::BytesOfNoFile(kind));
        }
        Ok(Entry { name: parts(&written, kind)?, kind, size })
    }
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Octal digits with spaces and NULs around them, or GNU's binary form for large numbers.
fn number(field: &[u8]) -> Result<u64, Refusal> {
    match field.split_first() {
        Some((0x80, digits)) => {
            let (high, low) = digits.split_at_checked(digits.len().saturating_sub(8)).ok_or(Refusal::Number)?;
            let low = <[u8; 8]>::try_from(low).map_err(|_| Refusal::Number)?;
            let number = u64::from_be_bytes(low);
            if high.iter().any(|byte| *byte != 0) || i64::try_from(number).is_err() {
                return Err(Refusal::Number);
            }
            Ok(number)
        }
        _ => octal(field),
    }
}

fn octal(field: &[u8]) -> Result<u64, Refusal> {
    let is_filler = |byte: &u8| matches!(byte, 0 | b' ');
    let start = field.iter().position(|byte| !is_filler(byte)).unwrap_or(field.len());
    let rest = field.get(start..).unwrap_or_default();
    let end = rest.iter().position(is_filler).unwrap_or(rest.len());
    let (digits, filler) = rest.split_at(end);
    if !filler.iter().all(is_filler) {
        return Err(Refusal::Number);
    }
    digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'7' => number.checked_mul(8).map(|number| number + u64::from(digit - b'0')).ok_or(Refusal::Number),
        _ => Err(Refusal::Number),
    })
}

/// The parts of a name as a file system would see them.
fn parts(written: &[u8], kind: Kind) -> Result<Vec<Vec<u8>>, Refusal> {
    // Quoted and cut: it goes into messages.
    let shown = || format!("{:?}", String::from_utf8_lossy(written.get(..100).unwrap_or(written)));
    if written.starts_with(b"/") {
        return Err(Refusal::AbsoluteName(shown()));
    }
    if written.contains(&0) {
        return Err(Refusal::NulInName(shown()));
    }
    let parts: Vec<&[u8]> = written.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) {
        return Err(Refusal::UpwardName(shown()));
    }
    if written.len() > PATH_LIMIT || parts.iter().any(|part| part.len() > NAME_LIMIT) {
        return Err(Refusal::LongName(shown()));
    }
    match parts.last() {
        None if kind != Kind::Folder || written.is_empty() => Err(Refusal::EmptyName(shown())),
        Some(last) if last.strip_prefix(WHITEOUT).is_some_and(|gone| matches!(gone, b"" | b"." | b"..")) => {
            Err(Refusal::EmptyName(shown()))
        }
        Some(_) | None => Ok(parts.into_iter().map(<[u8]>::to_vec).collect()),
    }
}
