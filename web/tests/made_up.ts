// What this machine does not have: disks and bays, of which four went dark after a reboot; a lab, which takes root; runs
// of the bench, which take time.

import type { Page } from 'playwright-core';
import type { Bay, Bed, BenchComparison, BenchRun, BenchSecond, Disk, DiskReport, LabState } from '../src/api/types.ts';

const BAYS = 12;
const ENCLOSURE = '500304801f1e2a3f';
const DARK = new Set([2, 5, 8, 11]);

const facts = (at: number): Disk['facts'] => ({ protocol: 'ATA', passed: true, reallocated_sectors: 0, pending_sectors: 0, temperature_celsius: 31 + (at % 5), power_on_hours: 21_000 + at });
const platters = (at: number): Disk => ({
  id: `ZC1000${at}`, names: [`sd${String.fromCharCode(97 + at)}`], model: 'SEAGATE ST12000NM0008', serial: `ZC1000${at}`, firmware: 'SN03', wwn: `naa.5000c500a1b2c3${at}0`,
  capacity_bytes: 12_000_138_625_024, rotation_rpm: 7200, health: 'well', smart: 'read', read_at: new Date().toISOString(), facts: facts(at), used_by: ['pool default'], bay: String(at),
  no_forecast: 'nothing changes: 40 samples of 180 days',
});

const failing: Partial<Disk> = {
  health: 'failing', facts: { ...facts(3), reallocated_sectors: 1264, pending_sectors: 24, temperature_celsius: 47 },
  findings: [{ verdict: 'failing', cause: '1264 sectors are reallocated and 24 cannot be read', next_step: 'replace the disk before it fails; scrub its LUNs now' }],
  forecasts: [{ of: 'reallocated_sectors', text: 'reallocated sectors at 1264 and growing 210 a week', per_week_thousandths: 210_000, samples: 14, days: 90 }],
};
const flash: Disk = {
  id: 'BTLJ8401', names: ['nvme0n1'], model: 'INTEL SSDPE2KX010T8', serial: 'BTLJ8401', firmware: 'VDV10131', wwn: 'eui.0025388b71b4f1a2', capacity_bytes: 1_000_204_886_016,
  rotation_rpm: 0, health: 'replace_soon', smart: 'read', read_at: new Date().toISOString(), used_by: ['journal of pool default'],
  facts: { protocol: 'NVMe', passed: true, wear_percent: 88, spare_percent: 12, spare_threshold_percent: 10, media_errors: 0, temperature_celsius: 43, temperature_warning_celsius: 75, power_on_hours: 31_020, unsafe_shutdowns: 14 },
  findings: [{ verdict: 'replace_soon', cause: 'spare blocks at 12 % and falling 2 % a week: replace before 2027-02-10', next_step: 'order another one now' }],
  forecasts: [{ of: 'spare_percent', text: 'spare blocks at 12 % and falling 2 % a week: replace before 2027-02-10', before: '2027-02-10', per_week_thousandths: -2000, samples: 26, days: 120 }],
};

function bay(at: number): Bay {
  const common = { name: String(at), enclosure: ENCLOSURE, slot: String(at) };
  if (!DARK.has(at)) return { ...common, state: 'disk', status: 'OK', disk: `ZC1000${at}` };
  return {
    ...common, state: at === 8 ? 'no_start' : 'dark', status: at === 8 ? 'critical' : 'not installed',
    held: { serial: `ZC1000${at}`, model: 'SEAGATE ST12000NM0008', last_seen: '2026-11-26T04:10:00.000Z' },
    finding: {
      verdict: 'failing', cause: `bay ${at} of enclosure ${ENCLOSURE} holds ${at === 8 ? 'a disk that does not start' : 'no disk that the system sees'}; SEAGATE ST12000NM0008 serial ZC1000${at} was there on 2026-11-26`,
      next_step: 'push the disk in again; where bays stay dark after a warm start, switch the machine off and on, and update the firmware of controller and backplane',
    },
  };
}

const gone: Disk = { id: 'ZC10002', names: [], model: 'SEAGATE ST12000NM0008', serial: 'ZC10002', health: 'failing', smart: 'missing', facts: {}, used_by: ['pool default'], missing_since: '2026-11-26T04:10:00.000Z', findings: [{ verdict: 'failing', cause: 'it is not there any more, and pool default lay on it', next_step: 'push it in again' }] };

export function report(): DiskReport {
  const all = Array.from({ length: BAYS }, (_, at) => at).filter((at) => !DARK.has(at)).map(platters);
  const disks = all.map((disk) => (disk.id === 'ZC10003' ? { ...disk, ...failing } : disk));
  return { at: new Date().toISOString(), disks: [flash, ...disks, gone], bays: Array.from({ length: BAYS }, (_, at) => bay(at)), notes: [] };
}

/** The page is told of these disks instead of the machine's. */
export async function withDisks(page: Page): Promise<void> {
  await page.route('**/api/v1/disk_report', (route) => route.fulfill({ json: report() }));
}

const begun = '2026-11-26T04:10:00.000Z';
const path = { path: 'eth0 > p0', from: '10.0.0.1', portal: '10.0.0.100:3260', iops: 900, bytes_per_second: 3_686_400, retransmits: 0 };
const seconds = [1, 2, 3, 4].map((second): BenchSecond => ({
  second, phase: 'measuring', iops: 900 + second, read_iops: 600, write_iops: 300 + second, bytes_per_second: 3_686_400, errors: 0, p50_us: 210, p99_us: 900 + second, max_us: 4_000,
  paths: [{ ...path, state: 'active' }, { ...path, path: 'eth1 > p1', state: 'standby', iops: 0 }],
}));
const run = (id: number): BenchRun => ({
  id, name: `nightly ${id}`, state: 'finished', target: 'vm01', kind: 'lun', writes: true, by: 'admin', started: begun, ended: begun, command_line: 'causeway bench -b4K -d4 -w33 vm01',
  elapsed_seconds: 4, whole_seconds: 4, percent: 100, seconds,
  summary: { iops: 902, read_iops: 600, write_iops: 302, bytes_per_second: 3_686_400, mean_us: 300, p50_us: 210, p99_us: 904, p999_us: 2_000, max_us: 4_000, errors: 0 },
});
const compared: BenchComparison = {
  a: run(1), b: run(2),
  rows: [
    { figure: 'IOPS', a: 902, b: 990, change_pct: 9.8, verdict: 'better' }, { figure: 'p99, µs', a: 904, b: 1_400, change_pct: 54.9, verdict: 'worse' },
    { figure: 'p50, µs', a: 210, b: 210, change_pct: 0, verdict: 'same' }, { figure: 'errors', a: 0, b: 0, change_pct: null, verdict: '' },
  ],
};
const bed: Bed = {
  id: 1, topology: 'pairs', title: 'Two ports, two portals', state: 'running', by: 'admin', started: begun, command_line: 'sudo causeway lab up pairs',
  machines: [0, 1].map((at) => ({
    name: at ? 'target' : 'host', kind: at ? 'target' : 'host',
    ports: [0, 1].map((port) => ({ name: `${at ? 'p' : 'eth'}${port}`, card: 'a', address: `10.0.${port}.${at ? 100 : 1}`, rate_bits: 250e6, link: `${at ? 'p' : 'eth'}${port}` })),
  })),
  switches: [0, 1].map((network) => ({ name: `switch ${network}`, network })),
  links: [0, 1, 2, 3].map((at) => {
    const port = `${at < 2 ? 'eth' : 'p'}${at % 2}`;
    return { id: port, machine: at < 2 ? 'host' : 'target', port, switch: `switch ${at % 2}`, state: (['up', 'cut', 'slow', 'black_hole'] as const)[at] ?? 'up' };
  }),
  paths: [{ ...path, nic: 'eth0', port: 'p0', state: 'active' }, { ...path, path: 'eth1 > p1', nic: 'eth1', port: 'p1', state: 'down', why: 'no answer', iops: 0 }],
  load: { command_line: 'causeway bench', elapsed_seconds: 4, whole_seconds: 60, errors: 0 }, seconds, log: [{ second: 2, text: 'link eth1 is cut' }],
};

/** The page is told of these runs, and of a lab that may be started. */
export async function withRuns(page: Page): Promise<void> {
  const answer = (path: RegExp, json: unknown) => page.route(path, (route) => route.fulfill({ json }));
  await answer(/\/api\/v1\/bench\/runs\/1\b/, run(1));
  const { summary: _, ended: __, ...going } = run(3);
  await answer(/\/api\/v1\/bench\/runs\/3\b/, { ...going, state: 'running', whole_seconds: 60, percent: 7, seconds_left: 56 });
  await answer(/\/api\/v1\/bench\/compare\b/, compared);
  await answer(/\/api\/v1\/lab\/beds\/1\b/, bed);
  await page.route('**/api/v1/lab', async (route) => {
    const answer = await route.fetch().catch(() => undefined);
    if (!answer) return route.abort();
    const { bed: _, ...lab } = (await answer.json()) as LabState;
    await route.fulfill({ json: { ...lab, may_start: true } });
  });
}
