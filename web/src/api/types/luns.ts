// LUNs, and who may use them.

import type { Pairs, Stages } from './activity.ts';

export type Size = number | string;

export interface Waited {
  deferred: number;
  waited_us: number;
  waiting: number;
}

/** How the copies of a LUN are, as the node that is asked knows it. */
export interface Mirror {
  state: string;
  owner?: string;
  epoch: number;
  copies: string[];
  in_sync: string[];
  serves: boolean;
  text: string;
  resyncs?: Resync[];
}

/** How far a copy is that is brought up by comparing it with the owner's. */
export interface Resync {
  node: string;
  done_bytes: number;
  left_bytes: number;
  sent_bytes: number;
  bytes_per_second: number;
  seconds_left?: number;
  whole?: string;
}

export interface Lun {
  name: string;
  state: 'online' | 'offline' | 'removed';
  reason?: string;
  size: Size;
  block_size: number;
  physical_block_size: number;
  thin: boolean;
  backing: string;
  pool?: string;
  members?: number[];
  naa: string;
  serial: string;
  allocated?: number;
  notices?: string[];
  grants: string[];
  bytes_in_flight_max?: Size;
  cache?: string;
  copies?: string[];
  min_copies?: number;
  integrity?: boolean;
  read_cache?: Size;
  limit?: { iops?: number; bytes_per_second?: Size; burst_seconds?: number };
  shares?: number;
  task_aborted_status?: string;
  limited?: Waited;
  shared?: Waited;
  cached?: { hits: number; misses: number; bytes: number };
  mirror?: Mirror;
  checksums?: {
    block_bytes: number;
    bad_blocks: number;
    unchecked_blocks: number;
    mismatches: number;
    repaired: number;
    adopted: number;
    broken?: string;
  };
  journal?: { path: string; state: string; destage_error?: string; pending_bytes?: number; lost_blocks?: number };
  verified?: string;
  findings?: string[];
  stalled?: { seconds: number; operations: number };
  in_flight: number;
  bytes_in_flight: number;
  ops: Record<string, { ops: number; bytes: number; latency: Stages; sizes?: Pairs }>;
}

export interface Grant {
  name: string;
  host: string;
  target: string;
  lun: string;
  lun_id: number;
  read_only: boolean;
}
