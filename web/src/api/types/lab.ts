// The lab: its topologies and beds.

import type { BenchSecond } from './bench.ts';

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
