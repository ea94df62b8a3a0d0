// Scrubs: how far they are, and what they found.

/** What a scrub has found in the journal of the LUN's pool. */
export interface JournalScrub {
  batches: number;
  changes: number;
  damaged_changes: number;
  damaged_superblocks: number;
  damaged_checkpoints: number;
  lost_blocks: number;
  problem?: string;
}

export interface Scrub {
  state: 'running' | 'stopped' | 'given_up' | 'finished';
  reason?: string;
  started: string;
  ended?: string;
  done_bytes: number;
  total_bytes: number;
  bytes_per_second: number;
  seconds_left?: number;
  yields: boolean;
  unreadable_blocks: number;
  mismatched_blocks: number;
  map_pages: number;
  journal?: JournalScrub;
  metadata?: string[];
  places?: { lba: number; blocks: number; damage: 'unreadable' | 'mismatch' }[];
  next?: string;
}
