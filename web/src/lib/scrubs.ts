// How a scrub stands, and how often it is asked for. Pure.

import type { JournalScrub, Scrub } from '../api/types.ts';
import { moment, plural, rate, seconds } from './format.ts';
import type { State } from './verdict.ts';

export const RUNNING_MS = 3_000;
/** What does not run changes when somebody or the schedule begins it. */
const RESTING_MS = 30_000;

/** Milliseconds to the next question. */
export const scrubEvery = (scrub: Scrub | undefined): number => (scrub?.state === 'running' ? RUNNING_MS : RESTING_MS);

/** What `scrub.every_days` of node.toml says. */
export function daysSaid(value: string | undefined): string {
  if (value === undefined) return 'No schedule: LUNs are scrubbed when somebody asks.';
  return `Each LUN is scrubbed ${value === '1' ? 'every day' : `every ${value} days`} by itself, one after the other.`;
}

/** All that is damaged in the journal, as the daemon counts it. */
function journalDamage(journal: JournalScrub | undefined): number {
  if (!journal) return 0;
  const { damaged_changes: changes, lost_blocks: blocks, damaged_superblocks: superblocks, damaged_checkpoints: checkpoints } = journal;
  return changes + blocks + superblocks + checkpoints + (journal.problem === undefined ? 0 : 1);
}

/** What else decides how a scrub stands. */
export interface Around {
  /** The LUN cannot be read now. */
  offline?: boolean;
  /** node.toml has a schedule. */
  scheduled?: boolean;
}

/** How it goes on, without what it has found. */
function goesOn(scrub: Scrub, { offline }: Around): [State, string] {
  const at = `${Math.floor((100 * scrub.done_bytes) / Math.max(1, scrub.total_bytes))} %`;
  if (scrub.state === 'given_up') return ['warn', `stopped by an error at ${at}: ${scrub.reason ?? 'no reason is known'}`];
  if (scrub.state === 'stopped') return ['off', `stopped at ${at}: it goes on from there`];
  if (scrub.state === 'finished') return ['good', 'nothing found'];
  if (offline) return ['warn', `paused at ${at}: the LUN is offline, it goes on when that is over`];
  if (!scrub.bytes_per_second) return ['good', scrub.yields ? `at ${at}, waits: hosts come first` : `at ${at}`];
  const left = scrub.seconds_left === undefined ? '' : `, ${seconds(scrub.seconds_left)} left`;
  return ['good', `at ${at}, ${rate(scrub.bytes_per_second)}${left}${scrub.yields ? ', gives way to hosts' : ''}`];
}

/** When it was read, and when the next one begins or should have begun. */
export function whenSaid(scrub: Scrub, now: number): string {
  const { ended, started, next } = scrub;
  const read = ended ? `read until ${moment(ended)}` : `since ${moment(started)}`;
  if (!next) return read;
  const late = now - Date.parse(next);
  return late > LATE_MS ? `${read}, the next is late by ${seconds(late / 1000)}` : `${read}, next ${moment(next)}`;
}

/** One is scrubbed after the other: so long it may wait for its turn. */
const LATE_MS = 86_400_000;

export function scrubSaid(scrub: Scrub | undefined, around: Around = {}): [State, string] {
  if (!scrub) return ['off', around.scheduled ? 'never scrubbed: it is due' : 'never scrubbed'];
  const [state, word] = goesOn(scrub, around);
  const found = scrub.unreadable_blocks + scrub.mismatched_blocks + scrub.map_pages + journalDamage(scrub.journal) + (scrub.metadata?.length ?? 0);
  if (!found) return [state, word];
  return ['bad', `${plural(found, 'finding')}${scrub.state === 'finished' ? '' : ` so far; ${word}`}`];
}

/** What a scrub has found, in a row of a table. */
export interface Finding {
  kind: 'cannot be read' | 'not what was written' | 'map of checksums' | 'journal' | 'metadata';
  lba?: number;
  blocks?: number;
  what: string;
  next: string;
}

const KINDS = { unreadable: 'cannot be read', mismatch: 'not what was written' } as const;
const REWRITE = 'Restore what lies there from a backup, by writing it, check the disk, then scrub again.';
const IN_JOURNAL = [
  ['damaged_changes', 'damaged change', 'damaged changes', true], ['lost_blocks', 'lost block of this LUN', 'lost blocks of this LUN', true],
  ['damaged_superblocks', 'damaged superblock', 'damaged superblocks', false], ['damaged_checkpoints', 'damaged checkpoint', 'damaged checkpoints', false],
] as const;

/** Damaged blocks of the LUN first, by where they are. */
export function findings(scrub: Scrub): Finding[] {
  const places = [...(scrub.places ?? [])].sort((a, b) => a.lba - b.lba);
  const blocks = places.map(({ lba, blocks, damage }): Finding => ({ kind: KINDS[damage], lba, blocks, what: `${plural(blocks, 'block')} from ${lba}`, next: REWRITE }));
  const more = scrub.unreadable_blocks + scrub.mismatched_blocks - places.reduce((sum, place) => sum + place.blocks, 0);
  const rest: Finding[] = more > 0 ? [{ kind: scrub.mismatched_blocks ? KINDS.mismatch : KINDS.unreadable, blocks: more, what: `${plural(more, 'more block')}: the places of the first ones are kept`, next: REWRITE }] : [];
  const pages: Finding[] = scrub.map_pages ? [{ kind: 'map of checksums', what: `${plural(scrub.map_pages, 'damaged page')} of it`, next: 'Check the disk. Blocks that it can no longer vouch for are refused until they are written again.' }] : [];
  const metadata = (scrub.metadata ?? []).map((what): Finding => ({ kind: 'metadata', what, next: 'Check the disk it lies on, then scrub again.' }));
  return [...blocks, ...rest, ...pages, ...inJournal(scrub.journal), ...metadata];
}

function inJournal(journal: JournalScrub | undefined): Finding[] {
  if (!journal) return [];
  if (journal.problem !== undefined) return [{ kind: 'journal', what: `could not be read: ${journal.problem}`, next: 'Check its device, then scrub again.' }];
  return IN_JOURNAL.filter(([member]) => journal[member]).map(([member, one, many, isData]): Finding => ({
    kind: 'journal', what: plural(journal[member], one, many), next: isData ? 'Check its device. Reads of those blocks fail until they are written again.' : 'Check its device. Another copy is in use.',
  }));
}

/** A part of a LUN on the map of its scrub. */
export interface Segment {
  lba: number;
  blocks: number;
  state: State;
  word: string;
}

/** The whole LUN from its begin to its end: what is read and sound, what is damaged, what is not read yet. */
export function segments(scrub: Scrub, blockSize: number): Segment[] {
  const whole = Math.ceil(scrub.total_bytes / blockSize);
  const read = Math.min(whole, Math.floor(scrub.done_bytes / blockSize));
  const out: Segment[] = [];
  let at = 0;
  const fill = (to: number) => {
    for (const [end, state, word] of [[Math.min(to, read), 'good', 'read, nothing found'], [to, 'off', 'not read yet']] as const) {
      if (end > at) out.push({ lba: at, blocks: end - at, state, word });
      at = Math.max(at, end);
    }
  };
  for (const { lba, blocks, damage } of [...(scrub.places ?? [])].sort((a, b) => a.lba - b.lba)) {
    fill(lba);
    out.push({ lba, blocks, state: 'bad', word: KINDS[damage] });
    at = Math.max(at, lba + blocks);
  }
  fill(whole);
  return out;
}
