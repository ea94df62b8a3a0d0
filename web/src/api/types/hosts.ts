// Hosts, their sessions and paths, and the targets that they log in to.

import type { Size } from './luns.ts';

export interface Target {
  name: string;
  iqn: string;
  portal_group: string;
  portals: string[];
  redirect?: { to: string; permanent?: boolean };
  maintenance: boolean;
  maintenance_grace_seconds: number;
  sessions: number;
}

export interface Host {
  name: string;
  iqn: string[];
  chap?: { user: string; mutual_user?: string };
  bytes_in_flight_max?: Size;
  sessions: number;
  redundancy: Redundancy;
}

/** How many paths a host has: to the target, and over the initiator, that has the fewest. */
export interface Redundancy {
  connected: boolean;
  least_paths: number;
  targets?: { target: string; least_paths: number }[];
}

/** The NIC of the host, as our own initiator reports it. */
export interface SessionNic {
  name: string;
  card?: string;
  fabric?: string;
  bits_per_second?: number;
  links?: number;
  mtu?: number;
  /** The host plans its paths: those that move nothing stand by. */
  planned: boolean;
}

export interface Session {
  id: number;
  host: string;
  initiator: string;
  target?: string;
  from: string;
  portal: string;
  core: number;
  load_permille: number;
  pinned: boolean;
  since: string;
  bytes_in: number;
  bytes_out: number;
  in_flight: number;
  bytes_in_flight: number;
  commands: number;
  chap_user?: string;
  mutual_chap: boolean;
  nic?: SessionNic;
  luns: { lun_id: number; lun: string; read_only: boolean }[];
  keys: Record<string, string>;
}

export interface Refusal {
  at: string;
  times: number;
  initiator: string;
  from: string;
  target: string;
  portal: string;
  code: string;
  status: string;
  reason: string;
}
