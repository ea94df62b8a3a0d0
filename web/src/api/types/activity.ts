// What the node does: counters, and how long commands took.

/** Pairs of a bound in microseconds and how many took no longer, and longer than the bound before. */
export type Buckets = [number, number][];

/** Pairs of bytes and how many had so many at least, and less than twice as many. */
export type Pairs = [number, number][];

export interface Latency {
  count: number;
  us_sum: number;
  buckets?: Buckets;
}

export interface Stages {
  total?: Latency;
  network?: Latency;
  queue?: Latency;
  /** Of writes that a journal answered. */
  journal?: Latency;
  backend?: Latency;
}

export interface OpActivity {
  ops: number;
  bytes: number;
  latency: Stages;
}

export interface LunActivity {
  name: string;
  online: boolean;
  in_flight: number;
  read: OpActivity;
  write: OpActivity;
  other_ops: number;
}

export interface SessionActivity {
  id: number;
  host: string;
  initiator: string;
  target?: string;
  from: string;
  core: number;
  load_permille: number;
  in_flight: number;
  commands: number;
  bytes_in: number;
  bytes_out: number;
  latency: Latency;
}

export interface Core {
  core: number;
  busy_us: number;
  load_permille: number;
  connections: number;
  disk_engine: string;
}

export interface Activity {
  node: string;
  started: string;
  at_us: number;
  cores: Core[];
  luns: LunActivity[];
  sessions: SessionActivity[];
}
