// What a change does, and whom it hits.

import type { SettingChange } from './settings.ts';

export interface Action {
  verb: string;
  section: string;
  name: string;
  detail: string;
  class: 'live' | 'new_sessions' | 'disruptive';
  hits?: { id: number; host: string; initiator: string; target?: string; bytes_per_second?: number }[];
  loses_data?: boolean;
  risks_data?: boolean;
}

export interface Outcome {
  changed: boolean;
  generation: number;
  actions: Action[];
  notices?: string[];
  refusal?: string;
}

/** What ends with a session, a user or a token, and whom that hits. */
export interface Ending {
  changed: boolean;
  ends: string;
  hits: { kind: 'host' | 'lun' | 'login' | 'token'; name: string; detail: string }[];
  refusal?: string;
}

/** A generation of the objects that is kept. */
export interface Kept {
  generation: number;
  written: string;
  in_force: boolean;
  luns: number;
  removed: number;
  targets: number;
  hosts: number;
  grants: number;
  /** Why it cannot be used. */
  problem?: string;
}

/** A host that a restart hits. */
export interface HostHit {
  host: string;
  sessions: { id: number; initiator: string; target?: string }[];
  luns: string[];
}

/** A restart that begins, or would begin. */
export interface RestartPlan {
  dry_run: boolean;
  started: string;
  sessions: number;
  hits: HostHit[];
  waiting: SettingChange[];
}
