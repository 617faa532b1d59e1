//! The byte-pair tokenizer of llama2.c, in memory that is laid out once.
//!
//! Encoding turns each character into its piece, or into its bytes, and then joins the neighbours whose joined piece scores best,
//! leftmost first, until none can be joined. That is quadratic in what can be joined. Two neighbours can be joined, now or
//! later, only if the last character of one and the first of the other stand side by side in some piece, so the text is cut
//! wherever they do not, and the parts are joined each by itself: words, in practice. The pairs that do are kept as a bit set
//! by hash: a false hit lets a part grow, and changes nothing else. A part longer than [`PART`] characters is cut there, so that
//! time stays linear in the text whatever it is, and space constant.

use crate::error::{Error, Status};
use crate::ops::check;
use crate::scratch::{Plan, Slot, Space};

/// The most characters that are joined with each other.
pub const PART: usize = 1024;

/// The first id of the 256 single bytes.
const BYTE: i32 = 3;

/// A score that llama2.c takes for none.
const NO_SCORE: f32 = -1e10;

static BYTES: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut i = 0;
    while i < 256 {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

/// A `tokenizer.bin`, piece by piece.
struct File<'f> {
    longest: usize,
    rest: &'f [u8],
}

impl<'f> File<'f> {
    fn open(file: &'f [u8]) -> Result<File<'f>, Error> {
        let (longest, rest) = file.split_first_chunk::<4>().ok_or_else(truncated)?;
        Ok(File { longest: u32::from_le_bytes(*longest) as usize, rest })
    }

    fn piece(&mut self) -> Result<(f32, &'f [u8]), Error> {
        let (score, rest) = self.rest.split_first_chunk::<4>().ok_or_else(truncated)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
        let (score, length) = (f32::from_le_bytes(*score), u32::from_le_bytes(*length) as usize);
        if score.is_nan() {
            return Err(Error::invalid("tokenizer", "scores that are numbers", "a NaN"));
        }
        if length > self.longest {
            return Err(Error::invalid("tokenizer", "no piece longer than it states", length));
        }
        let (piece, rest) = rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok((score, piece))
    }
}

fn truncated() -> Error {
    Error::invalid("tokenizer", "a piece for every token of the model", "the end of the file")
}

/// Where a tokenizer will lie.
pub(crate) struct TokenizerSlots {
    text: Slot<u8>,
    ends: Slot<u32>,
    scores: Slot<f32>,
    sorted: Slot<u32>,
    neighbours: Slot<u32>,
}

/// Checks that `file` is a tokenizer of `vocab` tokens; returns the length of all pieces.
pub(crate) fn check(file: &[u8], vocab: usize) -> Result<usize, Error> {
    if vocab < BYTE as usize + 256 {
        return Err(Error::invalid("vocab", "at least the 259 tokens of a tokenizer", vocab));
    }
    let (mut pieces, mut text) = (File::open(file)?, 0);
    for _ in 0..vocab {
        text += pieces.piece()?.1.len();
    }
    if !pieces.rest.is_empty() {
        return Err(Error::invalid("tokenizer", "an end after the last token of the model", "more bytes"));
    }
    if u32::try_from(text).is_err() {
        return Err(Error::invalid("tokenizer", "pieces of less than 4 GiB", text));
    }
    Ok(text)
}

/// Plans the memory of a tokenizer of `vocab` tokens, once it was found to be one.
pub(crate) fn plan(plan: &mut Plan, file: &[u8], vocab: usize) -> Result<TokenizerSlots, Error> {
    let text = check(file, vocab)?;
    Ok(TokenizerSlots {
        text: plan.slot(text)?,
        ends: plan.slot(vocab)?,
        scores: plan.slot(vocab)?,
        sorted: plan.slot(vocab)?,
        // About eight bits for each pair of neighbours.
        neighbours: plan.slot((text.max(1).next_power_of_two() / 4).max(1))?,
    })
}

/// A tokenizer in the memory of its model.
#[derive(Clone, Copy)]
pub(crate) struct Tokenizer<'m> {
    text: &'m [u8],
    ends: &'m [u32],
    scores: &'m [f32],
    /// Ids by piece, then by id.
    sorted: &'m [u32],
    /// A power of two of words.
    neighbours: &'m [u32],
}

fn slice<'t>(text: &'t [u8], ends: &[u32], id: usize) -> &'t [u8] {
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &text[start as usize..ends[id] as usize]
}

impl<'m> Tokenizer<'m> {
    /// Lays out a file that [`plan`] has checked.
    pub fn load(space: &Space<'m>, slots: TokenizerSlots, file: &[u8]) -> Result<Tokenizer<'m>, Error> {
        let (text, ends, scores) = (space.take(slots.text), space.take(slots.ends), space.take(slots.scores));
        let (mut pieces, mut end) = (File::open(file)?, 0);
        for (stop, score) in ends.iter_mut().zip(scores.iter_mut()) {
            let (s, piece) = pieces.piece()?;
            text[end..end + piece.len()].copy_from_slice(piece);
            end += piece.len();
            (*stop, *score) = (end as u32, s);
        }
        let (text, ends, scores) = (&*text, &*ends, &*scores);
        let sorted = space.take(slots.sorted);
        for (i, id) in sorted.iter_mut().enumerate() {
            *id = i as u32;
        }
        sorted.sort_unstable_by_key(|&id| (slice(text, ends, id as usize), id));
        let neighbours = space.take(slots.neighbours);
        neighbours.fill(0);
        for id in 0..ends.len() {
            let piece = slice(text, ends, id);
            // The blank before a text is a character of its own, whatever the text begins with.
            let first = piece.strip_prefix(b" ").and_then(|rest| characters(rest).next());
            let after_blank = first.map(|first| (&b" "[..], first));
            for (a, b) in characters(piece).zip(characters(piece).skip(1)).chain(after_blank) {
                let (word, bit) = place(neighbours.len(), a, b);
                neighbours[word] |= bit;
            }
        }
        Ok(Tokenizer { text, ends, scores, sorted, neighbours })
    }

    fn piece(&self, id: i32) -> &'m [u8] {
        slice(self.text, self.ends, id as usize)
    }

    /// The smallest id whose piece is `a` and then `b`, or -1.
    fn find(&self, a: &[u8], b: &[u8]) -> i32 {
        let at = self.sorted.partition_point(|&id| {
            let piece = slice(self.text, self.ends, id as usize);
            let (head, tail) = piece.split_at(a.len().min(piece.len()));
            (head, tail) < (a, b)
        });
        match self.sorted.get(at) {
            Some(&id) if slice(self.text, self.ends, id as usize).split_at_checked(a.len()) == Some((a, b)) => id as i32,
            _ => -1,
        }
    }

    /// Whether some piece may hold the end of `a` and the beginning of `b` side by side.
    fn may_join(&self, a: i32, b: i32) -> bool {
        match (characters(self.piece(a)).last(), characters(self.piece(b)).next()) {
            (Some(a), Some(b)) => {
                let (word, bit) = place(self.neighbours.len(), a, b);
                self.neighbours[word] & bit != 0
            }
            // An empty piece joins with anything.
            _ => true,
        }
    }

    /// The bytes of `id` after `previous`: after the beginning of the sequence without one leading blank.
    pub fn text(&self, previous: i32, id: i32) -> Result<&'m [u8], Error> {
        check::id("id", id, self.ends.len())?;
        let piece = self.piece(id);
        let piece = if previous == 1 { piece.strip_prefix(b" ").unwrap_or(piece) } else { piece };
        Ok(byte(piece).map_or(piece, |b| &BYTES[usize::from(b)..][..1]))
    }

    /// Calls `out` with the ids of `text`, in order.
    fn each(&self, text: &[u8], out: &mut impl FnMut(i32)) {
        let mut part = Part { ids: [0; PART], joined: [0; PART], scores: [0.0; PART], len: 0 };
        let mut add = |id: i32| {
            if part.len == PART || part.len > 0 && !self.may_join(part.ids[part.len - 1], id) {
                part.join(self);
                part.ids[..part.len].iter().for_each(|&id| out(id));
                part.len = 0;
            }
            part.ids[part.len] = id;
            part.len += 1;
        };
        let blank: &[u8] = if text.is_empty() { b"" } else { b" " };
        for character in characters(blank).chain(characters(text)) {
            match self.find(character, b"") {
                -1 => character.iter().for_each(|&b| add(i32::from(b) + BYTE)),
                id => add(id),
            }
        }
        part.join(self);
        part.ids[..part.len].iter().for_each(|&id| out(id));
    }

    /// How many ids `text` has. They are written if `ids` has room for all of them, else none is.
    pub fn encode(&self, text: &[u8], ids: &mut [i32]) -> usize {
        let count = |n: &mut usize| *n += 1;
        let mut needed = 0;
        if ids.len() <= text.len() {
            self.each(text, &mut |_| count(&mut needed));
            if needed > ids.len() {
                return needed;
            }
        }
        needed = 0;
        self.each(text, &mut |id| {
            ids[needed] = id;
            count(&mut needed);
        });
        needed
    }
}

/// Pieces that are joined with each other and with nothing else.
struct Part {
    ids: [i32; PART],
    /// What a piece and the next give, or -1.
    joined: [i32; PART],
    scores: [f32; PART],
    len: usize,
}

impl Part {
    fn look(&mut self, tokenizer: &Tokenizer<'_>, i: usize) {
        let id = tokenizer.find(tokenizer.piece(self.ids[i]), tokenizer.piece(self.ids[i + 1]));
        self.joined[i] = id;
        self.scores[i] = if id < 0 { NO_SCORE } else { tokenizer.scores[id as usize] };
    }

    fn join(&mut self, tokenizer: &Tokenizer<'_>) {
        for i in 0..self.len.saturating_sub(1) {
            self.look(tokenizer, i);
        }
        loop {
            let pairs = self.scores[..self.len.saturating_sub(1)].iter().enumerate();
            let best = pairs.fold((NO_SCORE, None), |best, (i, &s)| if s > best.0 { (s, Some(i)) } else { best });
            let (_, Some(i)) = best else { return };
            self.ids[i] = self.joined[i];
            self.ids.copy_within(i + 2..self.len, i + 1);
            self.joined.copy_within(i + 1..self.len, i);
            self.scores.copy_within(i + 1..self.len, i);
            self.len -= 1;
            if i > 0 {
                self.look(tokenizer, i - 1);
            }
            if i + 1 < self.len {
                self.look(tokenizer, i);
            }
        }
    }
}

/// The characters of UTF-8; of other bytes, a byte and up to three continuation bytes behind it.
fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = text;
    core::iter::from_fn(move || {
        let length = 1 + rest.iter().skip(1).take(3).take_while(|&&b| b & 0xC0 == 0x80).count();
        let (character, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some(character)
    })
}

/// The word and the bit of a pair of neighbours.
fn place(words: usize, a: &[u8], b: &[u8]) -> (usize, u32) {
    // The byte between them is none of UTF-8.
    let bytes = a.iter().chain(&[0xFF]).chain(b);
    let hash = bytes.fold(0x811C_9DC5u32, |hash, &b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193));
    ((hash >> 5) as usize & (words - 1), 1 << (hash & 31))
}

/// The byte that a piece spelled `<0xXX>` stands for.
fn byte(piece: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = piece else { return None };
    let digit = |c: u8| char::from(c).to_digit(16);
    Some((digit(*high)? << 4 | digit(*low)?) as u8)
}

/// What a model without a tokenizer answers.
pub(crate) fn none() -> Error {
    Error::new(Status::Null, "tokenizer", "a tokenizer, in the file or in the options", "none")
}
