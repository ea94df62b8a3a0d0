// Pools, their members, their journals, and what they hold of LUNs that no object names.

export interface Journal {
  path: string;
  state: 'open' | 'failed' | 'missing';
  problem?: string;
  full?: boolean;
  size_bytes: number;
  used_bytes: number;
  rings: number;
  pending_bytes: number;
  oldest_ms?: number;
  destaged_bytes_per_second: number;
  batches: number;
  changes: number;
  written_bytes: number;
  destaged_bytes: number;
  write_around_bytes: number;
  index_bytes: number;
  history_bytes: number;
  waiting_changes: number;
  waiting_bytes: number;
  throttled: number;
  misreads: number;
  replayed_batches: number;
  lost?: { lun: string; lba: number; blocks: number }[];
  lost_blocks?: Record<string, number>;
  destage_errors?: { lun: string; reason: string }[];
}

export interface Member {
  member?: number;
  path: string;
  serial?: string;
  event?: number;
  last_event: number;
  size_bytes?: number;
  taken_bytes: number;
  disks?: string[];
  state: string;
}

export interface Pool {
  name: string;
  path: string;
  total: number;
  available: number;
  used: number;
  state: 'ok' | 'low' | 'full' | 'missing' | 'silent' | 'unusable';
  provisioned_bytes: number;
  outstanding_bytes: number;
  shares_with?: string[];
  overcommitted_bytes?: number;
  full_in_seconds?: number;
  forecast?: { trend: 'too_little' | 'steady' | 'shrinks' | 'fills'; text: string; full_at?: string };
  age_seconds?: number;
  problem?: string;
  health?: { system: string; severity: 'ok' | 'warning' | 'error'; checks?: string[] };
  layout: string;
  event?: number;
  members?: Member[];
  notes?: string[];
  journal?: Journal;
}

/** What a pool holds of a LUN that no object names. */
export interface Orphan {
  pool: string;
  naa: string;
  file?: string;
  size_bytes: number;
  name?: string;
  /** It was deleted, and kept its data. */
  removed?: boolean;
  block_size?: number;
  /** Why its record cannot be used. */
  problem?: string;
  /** It was never a LUN here. */
  is_foreign?: boolean;
  has_checksums: boolean;
}
