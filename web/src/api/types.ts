// The documents of the API as the page reads them. docs/interface.md promises their members.

export type Size = number | string;
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

export interface Waited {
  deferred: number;
  waited_us: number;
  waiting: number;
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
  integrity?: boolean;
  read_cache?: Size;
  limit?: { iops?: number; bytes_per_second?: Size; burst_seconds?: number };
  shares?: number;
  task_aborted_status?: string;
  limited?: Waited;
  shared?: Waited;
  cached?: { hits: number; misses: number; bytes: number };
  checksums?: {
    block_bytes: number;
    bad_blocks: number;
    unchecked_blocks: number;
    mismatches: number;
    repaired: number;
    adopted: number;
    broken?: string;
  };
  journal?: { path: string; state: string; destage_error?: string; lost_blocks?: number };
  verified?: string;
  findings?: string[];
  stalled?: { seconds: number; operations: number };
  in_flight: number;
  bytes_in_flight: number;
  ops: Record<string, { ops: number; bytes: number; latency: Stages; sizes?: Pairs }>;
}

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

export interface Grant {
  name: string;
  host: string;
  target: string;
  lun: string;
  lun_id: number;
  read_only: boolean;
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

export interface NodeEvent {
  id: number;
  time: string;
  code: string;
  severity: string;
  object: { kind: string; name: string };
  message: string;
  fields?: object;
}

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

export type Role = 'viewer' | 'operator' | 'admin';

export interface Me {
  name: string;
  role: Role;
  via: string;
  csrf?: string;
  must_change: boolean;
}

export interface User {
  name: string;
  role: Role;
  enabled: boolean;
  must_change: boolean;
  created: string;
  password_set: string;
}

export interface Token {
  id: string;
  name: string;
  role: Role;
  created_by: string;
  created: string;
  expires: string | null;
  has_ended: boolean;
  last_use: string | null;
  /** In the answer to its making only. */
  token?: string;
}

export interface LoginSession {
  began: string;
  used: string;
  is_this: boolean;
}

export interface Certificate {
  https: boolean;
  origin?: 'own' | 'given';
  file?: string;
  fingerprint?: string;
  names?: string[];
  issuer?: string;
  begins?: string;
  ends?: string;
  problem?: string;
}

export type Severity = 'info' | 'warning' | 'critical';

/** Alerts that are not over. The severities: what nobody has acknowledged or silenced. */
export interface AlertCounts {
  critical: number;
  warning: number;
  info: number;
  acknowledged: number;
  silenced: number;
}

export interface AlertStep {
  at: string;
  what: string;
  by?: string;
  note?: string;
}

export interface Alert {
  id: number;
  state: 'firing' | 'acknowledged' | 'silenced' | 'resolved';
  severity: Severity;
  rule: string;
  title: string;
  kind: string;
  object: string;
  cause: string;
  next_step: string;
  doc: string;
  fired: string;
  resolved?: string;
  acknowledged?: { by: string; at: string; note?: string };
  silence?: number;
  silenced_until?: string;
  steps: AlertStep[];
}

export interface Silence {
  id: number;
  rule?: string;
  kind?: string;
  object?: string;
  until: string;
  by: string;
  note: string;
  created: string;
  silenced: number;
}

export interface Bound {
  value: number;
  default: number;
  least: number;
  most: number;
  meaning: string;
}

export interface AlertRule {
  id: string;
  title: string;
  enabled: boolean;
  severity: Severity;
  condition: string;
  over: string;
  hold_seconds: number;
  clear_seconds: number;
  bounds: Record<string, Bound>;
  next_step: string;
  doc: string;
  is_changed: boolean;
  firing: number;
}

export type Encryption = 'starttls' | 'tls' | 'none';

export interface Receiver {
  name: string;
  kind: 'webhook' | 'mail' | 'command';
  enabled: boolean;
  least: Severity;
  rules: string[];
  group_seconds: number;
  remind_hours: number;
  resolved: boolean;
  webhook?: { at: string; has_token: boolean; has_ca: boolean };
  mail?: { server: string; port: number; encryption: Encryption; user?: string; has_password: boolean; from: string; to: string[]; has_ca: boolean };
  command?: { name: string };
  delivered: number;
  failed: number;
  waiting: number;
  last_success?: string;
  last_failure?: string;
  problem?: string;
}

export interface Audited {
  id: number;
  time: string;
  /** The same in the words that the command line shows as well. */
  words: { did: string; about: string; from: string; result: string };
  who: string;
  via: string;
  from?: string;
  method: string;
  path: string;
  object?: { kind: string; name: string };
  before?: unknown;
  after?: unknown;
  asked?: unknown;
  status: number;
  code?: string;
  /** Of work that takes long, which has two entries: that it began, and how it ended. */
  job?: number;
  bad_token?: boolean;
  request_id: string;
}

export type DiskVerdict = 'unknown' | 'well' | 'watch' | 'replace_soon' | 'failing';

export interface DiskFinding {
  verdict: DiskVerdict;
  cause: string;
  next_step: string;
}

export interface DiskFacts {
  protocol?: string;
  passed?: boolean;
  wear_percent?: number;
  spare_percent?: number;
  spare_threshold_percent?: number;
  reallocated_sectors?: number;
  pending_sectors?: number;
  offline_uncorrectable_sectors?: number;
  uncorrected_errors?: number;
  media_errors?: number;
  grown_defects?: number;
  crc_errors?: number;
  temperature_celsius?: number;
  temperature_warning_celsius?: number;
  temperature_critical_celsius?: number;
  power_on_hours?: number;
  power_cycles?: number;
  unsafe_shutdowns?: number;
  self_test?: string;
  self_test_passed?: boolean;
  critical_warning?: number;
  failing_attributes?: string[];
  failed_before?: string[];
  logged_errors?: number;
}

export interface Disk {
  id: string;
  names: string[];
  model?: string;
  serial?: string;
  firmware?: string;
  wwn?: string;
  capacity_bytes?: number;
  rotation_rpm?: number;
  health: DiskVerdict;
  findings?: DiskFinding[];
  forecasts?: { of: string; text: string; before?: string; per_week_thousandths: number; samples: number; days: number }[];
  trends?: { of: string; per_week_thousandths?: number; samples: number; days: number }[];
  no_forecast?: string;
  smart: 'waiting' | 'read' | 'asleep' | 'unsupported' | 'not_permitted' | 'no_smartctl' | 'timed_out' | 'failed' | 'missing';
  smart_detail?: string;
  read_at?: string;
  facts: DiskFacts;
  used_by?: string[];
  bay?: string;
  missing_since?: string;
}

export interface Bay {
  name: string;
  enclosure: string;
  slot: string;
  state: 'empty' | 'disk' | 'dark' | 'no_start';
  status?: string;
  disk?: string;
  held?: { serial: string; model?: string; last_seen: string };
  finding?: DiskFinding;
}

export interface DiskReport {
  at?: string;
  disks: Disk[];
  bays: Bay[];
  notes?: string[];
  no_smart?: string;
}

export interface Job {
  id: number;
  kind: string;
  object: string;
  state: 'running' | 'finished' | 'failed' | 'cancelled' | 'interrupted';
  cancelling: boolean;
  unit: string;
  done: number;
  total: number;
  percent: number;
  rate: number;
  seconds_left?: number;
  started: string;
  ended?: string;
  by: string;
  reason?: string;
  link?: string;
  log: { at: string; text: string }[];
}

export interface BenchLimits {
  seconds_max: number;
  threads_max: number;
  outstanding_max: number;
  block_bytes_max: number;
  in_flight_bytes_max: number;
  memory_bytes_max: number;
}

export interface BenchState {
  running?: number;
  kept: number;
  kept_max: number;
  limits: BenchLimits;
}

export interface BenchPlan {
  command_line: string;
  target: string;
  kind: string;
  writes: boolean;
  touches: string[];
  refusal?: string;
  confirm?: string;
  losses?: string[];
  hits?: string[];
}

export interface BenchSummary {
  iops: number;
  read_iops: number;
  write_iops: number;
  bytes_per_second: number;
  mean_us: number;
  p50_us: number;
  p99_us: number;
  p999_us: number;
  max_us: number;
  errors: number;
}

export interface BenchSecond {
  second: number;
  phase: string;
  iops: number;
  read_iops?: number;
  write_iops?: number;
  bytes_per_second: number;
  errors: number;
  p50_us?: number;
  p99_us?: number;
  max_us?: number;
  paths?: { path: string; from: string; portal: string; state: string; iops: number; bytes_per_second: number; retransmits: number }[];
}

export interface BenchRun {
  id: number;
  name: string;
  state: 'running' | 'finished' | 'failed' | 'cancelled' | 'interrupted';
  phase?: string;
  target: string;
  kind: string;
  writes: boolean;
  by: string;
  started: string;
  ended?: string;
  command_line: string;
  elapsed_seconds: number;
  whole_seconds: number;
  percent: number;
  seconds_left?: number;
  problem?: { code: string; detail: string; hint: string };
  summary?: BenchSummary;
  seconds?: BenchSecond[];
}

export interface BenchComparison {
  a: BenchRun;
  b: BenchRun;
  rows: { figure: string; a: number; b: number; change_pct: number | null; verdict: 'better' | 'worse' | 'same' | '' }[];
}

export interface LabTopology {
  id: string;
  title: string;
  machines: { name: string; kind: string; ports: LabPort[] }[];
  links: unknown[];
  paths: string;
}

export interface LabPort {
  name: string;
  card: string;
  controller?: string;
  address: string;
  rate_bits: number;
  link: string;
}

export interface LabState {
  may_start: boolean;
  reason?: string;
  next_step?: string;
  command_line: string;
  bed?: number;
  topologies: LabTopology[];
}

export type LinkState = 'up' | 'cut' | 'black_hole' | 'slow';

export interface LabLink {
  id: string;
  machine: string;
  port: string;
  switch: string;
  state: LinkState;
}

export interface LabPath {
  path: string;
  from: string;
  portal: string;
  nic: string;
  port: string;
  state: string;
  why?: string;
  iops: number;
  bytes_per_second: number;
  retransmits: number;
}

export interface Bed {
  id: number;
  topology: string;
  title: string;
  state: 'starting' | 'running' | 'stopping' | 'stopped' | 'failed';
  by: string;
  started: string;
  ended?: string;
  problem?: { code: string; detail: string; hint: string };
  command_line: string;
  machines: { name: string; kind: string; ports: LabPort[] }[];
  switches: { name: string; network: number }[];
  links: LabLink[];
  paths: LabPath[];
  load: { command_line: string; elapsed_seconds: number; whole_seconds: number; errors: number };
  seconds?: BenchSecond[];
  log: { second: number; text: string }[];
}

/** A key of node.toml. */
export interface Setting {
  key: string;
  /** As TOML; without it the default holds. */
  value?: string;
  line?: number;
  /** It was changed by the API, in place of what the file says. */
  changed_here?: boolean;
  values: string;
  default: string;
  meaning: string;
  takes_effect: 'now' | 'restart';
  /** The API takes it by its key. */
  changeable?: boolean;
}

export interface SettingChange {
  key: string;
  /** Without it the default is in force. */
  in_force?: string;
  /** Without it the file says nothing any more. */
  in_file?: string;
  /** `now`: at once, or where the file was edited with a reload. */
  takes_effect: 'now' | 'restart';
}

export interface ConfigView {
  file: string;
  settings: Setting[];
  changes: SettingChange[];
  /** Why the daemon could not start with what the file says now. */
  mistakes: string[];
  /** That a restart ends. */
  sessions: number;
  /** Why nothing can be changed by the API. */
  fixed?: string;
  /** Keys that were changed by the API, and that the file says otherwise by now. */
  overtaken?: string[];
}

/** What a change of settings did: `in_force` was said before. */
export interface ConfigOutcome {
  dry_run: boolean;
  changes: SettingChange[];
  waiting: SettingChange[];
  /** What else is to be known of it, a sentence each. */
  notices?: string[];
  sessions: number;
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
