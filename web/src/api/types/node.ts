// The node: how it is, its portals, its NICs.

import type { AlertCounts } from './alerts.ts';
import type { Pool } from './pools.ts';

export type Verdict = 'ok' | 'degraded' | 'damaged';

export interface Portal {
  group: string;
  tag: number;
  address: string;
  interface?: string;
  problem?: string;
}

/** A NIC of the node that has an address. */
export interface NodeNic {
  name: string;
  card?: string;
  bits_per_second?: number;
  links: number;
  mtu: number;
  carrier: boolean;
  addresses: { address: string; network: string }[];
}

export interface Counts {
  luns: number;
  luns_offline: number;
  luns_removed: number;
  targets: number;
  targets_in_maintenance: number;
  targets_redirected: number;
  hosts: number;
  grants: number;
  sessions: number;
}

/** LUNs of which something is lost that others would keep. */
export interface NotSafe {
  lost_with: 'daemon' | 'power';
  by_default: boolean;
  luns: number;
  names: string[];
  text: string;
}

export interface Status {
  health: Verdict;
  problems: string[];
  node: string;
  node_id: string;
  version: string;
  started: string;
  generation: number;
  portals: Portal[];
  nics: NodeNic[];
  api: string[];
  memory: { total_bytes?: number; lun_bytes: number; read_cache_bytes: number };
  pools: Pool[];
  notes?: string[];
  not_safe?: NotSafe[];
  counts: Counts;
  alerts: AlertCounts;
}
