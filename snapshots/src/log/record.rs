//! The encodings of the log's records.
//!
//! In: records. Out: bytes relative to the log so far, and back. **Invariant:** [`decode`] reads the output of [`encode`] exactly
//! to its end; other bytes give an error and leave the staging unchanged.
//!
//! A record contains only what does not follow from earlier records:
//!
//! ```text
//! version   1 flags epoch source commit[20] (base) (parent) time tokens tokens digest[32] (settings[32]) changes
//!           flags: 1 has a base · 2 the base is the parent · 4 settings are spelled out
//!                  0 no parent · 8 the parent is the base's commit · 16 an earlier version's · 24 spelled out [20]
//! view      2 epoch view version
//! gone      3 epoch view
//! dropped   4 epoch versions                   their numbers, as a set
//! view      5 epoch view version time          as 2, and when it was seen
//! gone      6 epoch view time                  as 3, and when it was seen
//! recount   7 epoch count (tokens tokens)…     of every version so far; each the difference to the old value, less that of
//!                                              the version before
//! version   8 as 1, with `fields tokens…` in place of `tokens tokens`
//! recount   9 as 7, with `fields` behind count, and so many tokens for each version
//! changes   entries in, entries out, document rows in, document rows out: each a set (see `codec`)
//! ```
//!
//! Epochs count from the record before; versions are named by their distance; time and tokens differ from the base, or else from
//! the version before, whose settings are also the default. Live counts are not written, because they follow.
//!
//! The time of a move is in milliseconds, as the difference to the last earlier move with a time, of any view. A file may be
//! saved twice within a second, and the time distinguishes the states. A move within 17 minutes takes three bytes for it; seconds
//! would take two.

use crate::bitmaps::Moved;
use crate::codec::{self, CodecError, Reader};
use crate::digest::Digest;
use crate::history::Staging;
use crate::identity::{CommitId, Epoch, SourceId, VersionId, ViewId};
use crate::tokens::{LEAST_FIELDS, MOST_FIELDS, Tokens};
use crate::version::{Move, NewVersion, Record, Statistics, Version};
use roaring::RoaringBitmap;

const VERSION: u8 = 1;
const VIEW: u8 = 2;
const VIEW_GONE: u8 = 3;
const DROPPED: u8 = 4;
const VIEW_TIMED: u8 = 5;
const VIEW_GONE_TIMED: u8 = 6;
const RECOUNTED: u8 = 7;
const VERSION_LISTED: u8 = 8;
const RECOUNTED_LISTED: u8 = 9;

const HAS_BASE: u8 = 1;
const BASE_IS_PARENT: u8 = 2;
const SETTINGS_SPELLED: u8 = 4;
const PARENT_MASK: u8 = 24;
const PARENT_IS_BASE: u8 = 8;
const PARENT_EARLIER: u8 = 16;
const PARENT_SPELLED: u8 = 24;
const FLAGS: u8 = HAS_BASE | BASE_IS_PARENT | SETTINGS_SPELLED | PARENT_MASK;

/// Appends a record that may follow what `staging` holds; the caller has checked that it may.
pub(crate) fn encode(record: &Record, staging: &Staging<'_>, out: &mut Vec<u8>) {
    let epochs_on = |epoch: &Epoch| epoch.get().wrapping_sub(staging.epoch().get());
    let back = |version: &VersionId| staging.next_version().wrapping_sub(u64::from(version.get()));
    match record {
        Record::Version(version) => encode_version(version, staging, out),
        Record::View { epoch, view, version, time } => {
            out.push(if time.is_some() { VIEW_TIMED } else { VIEW });
            codec::put(out, epochs_on(epoch));
            codec::put(out, view.get().into());
            codec::put(out, back(version));
            encode_time(*time, staging, out);
        }
        Record::ViewGone { epoch, view, time } => {
            out.push(if time.is_some() { VIEW_GONE_TIMED } else { VIEW_GONE });
            codec::put(out, epochs_on(epoch));
            codec::put(out, view.get().into());
            encode_time(*time, staging, out);
        }
        Record::Dropped { epoch, versions } => {
            out.push(DROPPED);
            codec::put(out, epochs_on(epoch));
            codec::put_set(out, versions);
        }
        Record::Recounted { epoch, live_tokens } => {
            let known = |id| staging.version(id).map(|version| version.statistics.live_tokens).unwrap_or_default();
            let mut last = Tokens::default();
            let steps = (0..).map(VersionId::new).zip(live_tokens).map(|(id, tokens)| {
                let moved = tokens.since(known(id));
                moved.since(std::mem::replace(&mut last, moved))
            });
            let steps: Vec<Tokens> = steps.collect();
            let fields = steps.iter().map(|step| step.as_list().len()).max().unwrap_or(LEAST_FIELDS);
            out.push(if fields == LEAST_FIELDS { RECOUNTED } else { RECOUNTED_LISTED });
            codec::put(out, epochs_on(epoch));
            codec::put(out, live_tokens.len() as u64);
            if fields > LEAST_FIELDS {
                codec::put(out, fields as u64);
            }
            steps.iter().for_each(|step| put_tokens(step, fields, out));
        }
    }
}

/// Appends steps of tokens, for so many fields.
fn put_tokens(step: &Tokens, fields: usize, out: &mut Vec<u8>) {
    for tokens in &step.first::<MOST_FIELDS>()[..fields] {
        codec::put_signed(out, *tokens as i64);
    }
}

/// Reads how many fields a list has.
fn decode_fields(reader: &mut Reader<'_>) -> Result<usize, CodecError> {
    let fields = usize::try_from(reader.number()?).map_err(|_| CodecError::Number)?;
    if (LEAST_FIELDS..=MOST_FIELDS).contains(&fields) { Ok(fields) } else { Err(CodecError::Number) }
}

/// Reads steps of tokens, for so many fields.
fn decode_tokens(reader: &mut Reader<'_>, fields: usize) -> Result<Tokens, CodecError> {
    let mut steps = [0; MOST_FIELDS];
    for step in &mut steps[..fields] {
        *step = reader.signed()? as u64;
    }
    Ok(steps.into())
}

fn encode_time(time: Option<i64>, staging: &Staging<'_>, out: &mut Vec<u8>) {
    if let Some(time) = time {
        codec::put_signed(out, time.wrapping_sub(staging.last_move()));
    }
}

fn encode_version(new: &NewVersion, staging: &Staging<'_>, out: &mut Vec<u8>) {
    let back = |version: VersionId| staging.next_version().wrapping_sub(u64::from(version.get()));
    let base = new.base.and_then(|base| staging.version(base));
    let reference = reference(staging, base);
    let settings_follow = reference.is_some_and(|at| at.fingerprint == new.fingerprint && at.model == new.model);
    let earlier = new.parent.and_then(|parent| staging.by_commit(new.source, parent));
    let parent_kind = match new.parent {
        None => 0,
        Some(parent) if base.is_some_and(|base| base.commit == parent) => PARENT_IS_BASE,
        Some(_) if earlier.is_some() => PARENT_EARLIER,
        Some(_) => PARENT_SPELLED,
    };
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };

    let tokens_before = reference.map(|at| at.statistics.live_tokens).unwrap_or_default();
    let tokens = new.live_tokens.since(tokens_before);
    let fields = tokens.as_list().len();
    out.push(if fields == LEAST_FIELDS { VERSION } else { VERSION_LISTED });
    out.push(
        flag(new.base.is_some(), HAS_BASE)
            | flag(new.base_is_parent, BASE_IS_PARENT)
            | flag(!settings_follow, SETTINGS_SPELLED)
            | parent_kind,
    );
    codec::put(out, new.epoch.get().wrapping_sub(staging.epoch().get()));
    codec::put(out, new.source.get().into());
    out.extend_from_slice(new.commit.as_bytes());
    if let Some(base) = new.base {
        codec::put(out, back(base));
    }
    match (parent_kind, new.parent, earlier) {
        (PARENT_EARLIER, _, Some(earlier)) => codec::put(out, back(earlier)),
        (PARENT_SPELLED, Some(parent), _) => out.extend_from_slice(parent.as_bytes()),
        _ => {}
    }
    codec::put_signed(out, new.time.wrapping_sub(reference.map_or(0, |at| at.time)));
    if fields > LEAST_FIELDS {
        codec::put(out, fields as u64);
    }
    put_tokens(&tokens, fields, out);
    out.extend_from_slice(&new.digest.to_bytes());
    if !settings_follow {
        out.extend_from_slice(&new.fingerprint);
        out.extend_from_slice(&new.model);
    }
    new.changes.pack(out);
}

/// Returns the version that a record refers to: its base, or else the version before it.
fn reference<'a>(staging: &'a Staging<'_>, base: Option<&'a Version>) -> Option<&'a Version> {
    base.or_else(|| {
        let last = staging.next_version().checked_sub(1)?;
        staging.version(VersionId::new(u32::try_from(last).ok()?))
    })
}

/// Reads one record and adds it to `staging`.
pub(crate) fn decode(reader: &mut Reader<'_>, staging: &mut Staging<'_>) -> Result<(), CodecError> {
    // A recount is alone in its group: another record would see two values of a version's tokens.
    if staging.is_recounted() {
        return Err(CodecError::Kind);
    }
    match reader.byte()? {
        kind @ (VERSION | VERSION_LISTED) => decode_version(reader, staging, kind == VERSION_LISTED),
        kind @ (VIEW | VIEW_TIMED) => {
            let epoch = decode_epoch(reader, staging)?;
            let view = ViewId::new(reader.number32()?);
            let version = Some(decode_back(reader, staging)?);
            let time = if kind == VIEW_TIMED { Some(decode_time(reader, staging)?) } else { None };
            staging.push_view(view, Move { epoch, version, time });
            Ok(())
        }
        kind @ (VIEW_GONE | VIEW_GONE_TIMED) => {
            let epoch = decode_epoch(reader, staging)?;
            let view = ViewId::new(reader.number32()?);
            let time = if kind == VIEW_GONE_TIMED { Some(decode_time(reader, staging)?) } else { None };
            staging.push_view(view, Move { epoch, version: None, time });
            Ok(())
        }
        DROPPED => {
            let epoch = decode_epoch(reader, staging)?;
            let mut last = None;
            let mut versions = RoaringBitmap::new();
            reader.set(|run| {
                last = Some(*run.end());
                // A forged run must not create a set of all numbers.
                if u64::from(*run.end()) < staging.next_version() {
                    versions.insert_range(run);
                }
            })?;
            if last.is_some_and(|last| u64::from(last) >= staging.next_version()) {
                return Err(CodecError::Reference);
            }
            versions.iter().for_each(|version| staging.push_dropped(epoch, VersionId::new(version)));
            Ok(())
        }
        kind @ (RECOUNTED | RECOUNTED_LISTED) => decode_recount(reader, staging, kind == RECOUNTED_LISTED),
        _ => Err(CodecError::Kind),
    }
}

fn decode_recount(reader: &mut Reader<'_>, staging: &mut Staging<'_>, is_listed: bool) -> Result<(), CodecError> {
    let (epoch, count) = (decode_epoch(reader, staging)?, reader.number()?);
    if staging.is_begun() || count != staging.next_version() {
        return Err(CodecError::Kind);
    }
    let fields = if is_listed { decode_fields(reader)? } else { LEAST_FIELDS };
    let mut live_tokens = Vec::new();
    let mut moved = Tokens::default();
    while let Some(version) = u32::try_from(live_tokens.len()).ok().and_then(|id| staging.version(VersionId::new(id))) {
        moved.add(decode_tokens(reader, fields)?);
        let mut tokens = version.statistics.live_tokens;
        tokens.add(moved);
        live_tokens.push(tokens);
    }
    staging.push_recount(epoch, live_tokens);
    Ok(())
}

fn decode_epoch(reader: &mut Reader<'_>, staging: &Staging<'_>) -> Result<Epoch, CodecError> {
    let epoch = staging.epoch().get().checked_add(reader.number()?).ok_or(CodecError::Number)?;
    Ok(Epoch::new(epoch))
}

fn decode_time(reader: &mut Reader<'_>, staging: &Staging<'_>) -> Result<i64, CodecError> {
    Ok(staging.last_move().wrapping_add(reader.signed()?))
}

fn decode_back(reader: &mut Reader<'_>, staging: &Staging<'_>) -> Result<VersionId, CodecError> {
    let back = reader.number()?;
    let at = staging.next_version().checked_sub(back).filter(|_| back > 0).ok_or(CodecError::Reference)?;
    Ok(VersionId::new(u32::try_from(at).map_err(|_| CodecError::Reference)?))
}

fn decode_version(reader: &mut Reader<'_>, staging: &mut Staging<'_>, is_listed: bool) -> Result<(), CodecError> {
    // The kind has been read; it counts as one of the record's bytes.
    let before = reader.rest().len() + 1;
    let id = VersionId::new(u32::try_from(staging.next_version()).map_err(|_| CodecError::Number)?);
    let flags = reader.byte()?;
    if flags & !FLAGS != 0 {
        return Err(CodecError::Kind);
    }
    let epoch = decode_epoch(reader, staging)?;
    let source = SourceId::new(reader.number32()?);
    let commit = CommitId::from_bytes(reader.array()?);
    let base_id = if flags & HAS_BASE != 0 { Some(decode_back(reader, staging)?) } else { None };
    let base = base_id.and_then(|base| staging.version(base));
    let parent = match flags & PARENT_MASK {
        PARENT_IS_BASE => Some(base.ok_or(CodecError::Reference)?.commit),
        PARENT_EARLIER => {
            let earlier = decode_back(reader, staging)?;
            Some(staging.version(earlier).ok_or(CodecError::Reference)?.commit)
        }
        PARENT_SPELLED => Some(CommitId::from_bytes(reader.array()?)),
        _ => None,
    };
    let reference = reference(staging, base);
    let time = reader.signed()?.wrapping_add(reference.map_or(0, |at| at.time));
    let fields = if is_listed { decode_fields(reader)? } else { LEAST_FIELDS };
    let mut live_tokens = reference.map(|at| at.statistics.live_tokens).unwrap_or_default();
    live_tokens.add(decode_tokens(reader, fields)?);
    let digest = Digest::from_bytes(reader.array()?);
    let (fingerprint, model) = if flags & SETTINGS_SPELLED != 0 {
        (reader.array()?, reader.array()?)
    } else {
        reference.map(|at| (at.fingerprint, at.model)).ok_or(CodecError::Reference)?
    };

    let packed = reader.rest();
    let mut used_ordinals = [0; 2];
    let mut moved = [Moved::default(); 2];
    for (moved, used) in moved.iter_mut().zip(&mut used_ordinals) {
        moved.inserted = reader.set(|run| *used = u64::from(*run.end()) + 1)?;
        moved.retracted = reader.set(|_| {})?;
    }
    let packed = &packed[..packed.len() - reader.rest().len()];
    let live = |before: u64, moved: Moved| {
        let grown = before.checked_add(moved.inserted).ok_or(CodecError::Number)?;
        grown.checked_sub(moved.retracted).ok_or(CodecError::Underflow)
    };
    let counts = base.map(|base| base.statistics).unwrap_or_default();
    let [entries, documents] = moved;
    let statistics = Statistics {
        live_entries: live(counts.live_entries, entries)?,
        live_tokens,
        live_documents: live(counts.live_documents, documents)?,
    };
    let version = Version {
        id,
        epoch,
        source,
        commit,
        parent,
        base: base_id,
        base_is_parent: flags & BASE_IS_PARENT != 0,
        time,
        statistics,
        digest,
        fingerprint,
        model,
        entries,
        documents,
        bytes: (before - reader.rest().len()) as u64,
    };
    staging.push_version(version, packed, used_ordinals);
    Ok(())
}
