// Which charts show what was recorded of hosts, targets, pools, interfaces, stages and caches.

import type { Row } from '../live/past.svelte.ts';
import type { PastChart } from '../parts/PastCharts.svelte';
import { bytes, count, latency, percent, rate } from './format.ts';

const DASH = [6, 3];
const DOTS = [2, 3];
const LONG = [12, 3];

/** From this part on an alert says that a journal is nearly full, in percent. */
export const JOURNAL_MARK = 80;

const wholePercent = (value: number) => `${Math.round(value)} %`;

/** What part of a whole is in use, in percent; nothing where the whole is not known. */
export function partOf(row: Row, part: string, whole: string): number | undefined {
  const [a, b] = [row[part], row[whole]];
  return a === undefined || !b ? undefined : percent(a, b);
}

/** The sessions of a host, or those with a target. */
export const SESSION_METRICS = [
  'read_ops', 'write_ops', 'bytes_in', 'bytes_out', 'read_latency_p50', 'read_latency_p99', 'write_latency_p50', 'write_latency_p99',
  'in_flight', 'sessions',
];

export const SESSION_CHARTS: PastChart[] = [
  {
    title: 'IOPS', format: count,
    lines: [{ of: 'read_ops', name: 'read', color: 'read', fill: true }, { of: 'write_ops', name: 'write', color: 'write', dash: DASH }],
  },
  {
    title: 'Throughput', format: rate, binary: true,
    lines: [{ of: 'bytes_out', name: 'read', color: 'read', fill: true }, { of: 'bytes_in', name: 'write', color: 'write', dash: DASH }],
  },
  {
    title: 'Latency of reads', format: latency,
    lines: [{ of: 'read_latency_p50', name: 'p50', color: 'read' }, { of: 'read_latency_p99', name: 'p99', color: 'third', dash: DOTS }],
  },
  {
    title: 'Latency of writes', format: latency,
    lines: [{ of: 'write_latency_p50', name: 'p50', color: 'write', dash: DASH }, { of: 'write_latency_p99', name: 'p99', color: 'third', dash: DOTS }],
  },
  {
    title: 'Sessions and commands in flight', format: count,
    lines: [{ of: 'in_flight', name: 'in flight', color: 'third', fill: true }, { of: 'sessions', name: 'sessions', color: 'write', dash: DASH }],
  },
];

/** Of the stages of a host, or of a target. */
export const STAGES_NOTE = 'Of a session that is busy, a random part of its commands is measured and stands for all. Of each command the storage is counted as a whole.';

export const SPACE_METRICS = ['size_bytes', 'used_bytes'];

/** `reserved`: what the file system keeps for itself of the size that was recorded. */
export const spaceCharts = (reserved: number): PastChart[] => [
  {
    title: 'Space', format: bytes, binary: true,
    lines: [
      { of: 'used_bytes', name: 'used', color: 'read', fill: true },
      { of: (row) => (row['size_bytes'] === undefined ? undefined : Math.max(0, row['size_bytes'] - reserved)), name: 'can be used', color: 'write', dash: DASH },
    ],
  },
];

export const JOURNAL_METRICS = ['journal_size_bytes', 'journal_used_bytes', 'journal_pending_bytes', 'journal_written_bytes', 'destaged_bytes'];

export const JOURNAL_CHARTS: PastChart[] = [
  {
    title: 'Journal in use', format: wholePercent,
    lines: [
      { of: (row) => partOf(row, 'journal_used_bytes', 'journal_size_bytes'), name: 'in use', color: 'read', fill: true },
      { of: (row) => (row['journal_size_bytes'] === undefined ? undefined : JOURNAL_MARK), name: 'alert above', color: 'third', dash: DOTS },
    ],
  },
  {
    title: 'Into the journal, and destaged', format: rate, binary: true,
    lines: [{ of: 'journal_written_bytes', name: 'written', color: 'write', dash: DASH }, { of: 'destaged_bytes', name: 'destaged', color: 'read', fill: true }],
  },
  {
    title: 'Not destaged', format: bytes, binary: true,
    lines: [{ of: 'journal_pending_bytes', name: 'dirty', color: 'write', fill: true }],
  },
];

export const NIC_METRICS = ['bytes_in', 'bytes_out'];

export const nicChart = (name: string): PastChart => ({
  title: `Interface ${name}`, format: rate, binary: true,
  lines: [{ of: 'bytes_in', name: 'in', color: 'write', dash: DASH }, { of: 'bytes_out', name: 'out', color: 'read', fill: true }],
});

export const CACHE_METRICS = ['cache_hits', 'cache_misses'];

/** What part of reads the cache had, in percent; nothing where nothing was read. */
export function hitsOf(row: Row): number | undefined {
  const [hits, misses] = [row['cache_hits'], row['cache_misses']];
  return hits === undefined || misses === undefined || hits + misses === 0 ? undefined : percent(hits, hits + misses);
}

export const CACHE_CHARTS: PastChart[] = [
  {
    title: 'Read cache', format: count,
    lines: [{ of: 'cache_hits', name: 'hits', color: 'read', fill: true }, { of: 'cache_misses', name: 'misses', color: 'write', dash: DASH }],
  },
  { title: 'Read from the cache', format: wholePercent, lines: [{ of: hitsOf, name: 'hits', color: 'read', fill: true }] },
];

/** Of a percentile: `p50` or `p99`. A journal answers writes only. */
export const stageMetrics = (percentile: string): string[] => [
  ...['read', 'write'].flatMap((op) => ['network', 'queue', 'backend'].map((stage) => `${op}_${stage}_${percentile}`)),
  `write_journal_${percentile}`,
];

export const stageCharts = (percentile: string): PastChart[] =>
  ['read', 'write'].map((op) => ({
    title: `Stages of ${op}s, ${percentile}`, format: latency,
    lines: [
      { of: `${op}_backend_${percentile}`, name: 'backend', color: 'read' },
      { of: `${op}_queue_${percentile}`, name: 'queue', color: 'write', dash: DASH },
      { of: `${op}_network_${percentile}`, name: 'network', color: 'third', dash: DOTS },
      ...(op === 'write' ? [{ of: `write_journal_${percentile}`, name: 'journal', color: 'fourth', dash: LONG } as const] : []),
    ],
  }));
