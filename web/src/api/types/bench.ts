// Runs of the bench.

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
