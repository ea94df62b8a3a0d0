// The page's types are the documents of the API: each member is in the schema, of the same type, and there as often; what
// the page leaves out is listed here.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Daemon } from './daemon.ts';
import { Comparison, declared, type Schemas } from './documents.ts';

const API = join(import.meta.dirname, '../src/api');
const FILES = readdirSync(join(API, 'types'));
const types = declared(FILES.map((name) => readFileSync(join(API, 'types', name), 'utf8')).join('\n'));

/** The schema of each interface. */
const SCHEMAS: Record<string, string> = {
  Portal: 'PortalFacts', NodeNic: 'NodeNic', Counts: 'Counts', NotSafe: 'NotSafe', Status: 'StatusView', Journal: 'JournalFacts', Member: 'MemberFacts', Pool: 'PoolFacts',
  Latency: 'Latency', Stages: 'Stages', OpActivity: 'OpActivity', LunActivity: 'LunActivity', SessionActivity: 'SessionActivity', Core: 'CoreFacts', Activity: 'ActivityView',
  Waited: 'WaitFacts', Lun: 'LunView', Mirror: 'MirrorFacts', Resync: 'ResyncFacts', Target: 'TargetView', Host: 'HostView', Grant: 'GrantView', SessionNic: 'SessionNic', Session: 'SessionFacts', Refusal: 'RefusalFacts',
  JournalScrub: 'JournalScrub', Scrub: 'ScrubFacts', NodeEvent: 'Event', Action: 'Action', Outcome: 'Outcome', Ending: 'Ending', HostHit: 'HostHit', RestartPlan: 'RestartView', Redundancy: 'Redundancy', Me: 'Me', User: 'UserView', Token: 'TokenView',
  LoginSession: 'LoginSession', Certificate: 'CertificateView', AlertCounts: 'AlertCounts', AlertStep: 'Step', Alert: 'AlertView', Silence: 'SilenceView', Bound: 'BoundView',
  AlertRule: 'RuleView', Receiver: 'ReceiverView', Audited: 'Audited', DiskFinding: 'DiskFinding', DiskFacts: 'DiskFacts', Disk: 'DiskView', Bay: 'BayView', DiskReport: 'DiskReport',
  Job: 'JobView', BenchLimits: 'Limits', BenchState: 'BenchView', BenchPlan: 'PlanView', BenchSummary: 'Summary', BenchSecond: 'Second', BenchRun: 'RunDetail',
  BenchComparison: 'CompareView', LabTopology: 'TopologyView', LabPort: 'BedPort', LabState: 'LabView', LabLink: 'BedLink', LabPath: 'BedPath', Bed: 'BedView',
  Setting: 'SettingView', SettingChange: 'SettingChange', ConfigView: 'ConfigView', ConfigOutcome: 'ConfigOutcome', Kept: 'Kept', Orphan: 'Orphan',
};
/** Read in lists too, whose rows have less. */
const IN_LISTS = ['BenchRun.seconds: it is always there'];
const PROBLEM = ['cause', 'confirm', 'doc', 'faults', 'fields', 'hits', 'losses', 'status', 'title', 'type'];
/** What no screen shows; a new member of a document is to be shown, or to be named here. */
const NOT_SHOWN: Record<string, string[]> = {
  'Pool.forecast': ['bytes_per_day', 'earliest', 'known_seconds', 'latest'],
  // Its disks come with all of them.
  Pool: ['disks'],
  // How a start went is for Prometheus.
  Journal: ['replay_ms'],
  SessionActivity: ['portal'],
  Core: ['registered_bytes', 'registered_files'],
  'Lun.checksums': ['full', 'map_bytes', 'pages_lost', 'pages_read', 'pages_written', 'places'],
  // `text` says the same in words.
  'Lun.ops[]': ['in_flight'],
  // `backing` says the same in words.
  Lun: ['backend'],
  // The host that is hit has them; a restart ends them whatever goes over them.
  'HostHit.sessions[]': ['bytes_per_second', 'host'],
  Session: ['bytes_in_flight_max', 'latency', 'pdus_received', 'receives', 'receives_waited'],
  // The LUN has it.
  Scrub: ['found_before', 'verified'],
  Audited: ['objects'],
  BenchState: ['kept_bytes', 'kept_bytes_max'],
  BenchSecond: ['elapsed', 'whole'],
  'BenchSecond.paths[]': ['why'],
  BenchRun: ['load', 'result'],
  'BenchRun.problem': PROBLEM,
  LabTopology: ['switches'],
  LabPort: ['network'],
  Bed: ['namespaces'],
  'Bed.problem': PROBLEM,
  ConfigView: ['own_file'],
};

describe('the types of the page', () => {
  const daemon = new Daemon();
  let schemas: Schemas;
  before(async () => {
    await daemon.start();
    const document = (await (await fetch(`${daemon.url}/api/v1/openapi.json`)).json()) as { components: { schemas: Schemas } };
    schemas = document.components.schemas;
  });
  after(() => daemon.stop());

  it('are those of the documents of the API, and what is left out is listed', () => {
    const compared = new Comparison(types, schemas);
    for (const [name, schema] of Object.entries(SCHEMAS)) compared.compare(name, schema);
    assert.deepEqual(compared.differ.filter((one) => !IN_LISTS.includes(one)), []);
    assert.deepEqual(Object.fromEntries(compared.lacking), NOT_SHOWN);
  });

  it('are had from one place, whichever file they are in', () => {
    const from = [...readFileSync(join(API, 'types.ts'), 'utf8').matchAll(/'\.\/types\/([\w.]+)'/g)].map(([, name]) => name);
    assert.deepEqual(from, FILES.toSorted());
  });

  it('have a schema each, unless they are words or figures', () => {
    const plain = ['Size', 'Verdict', 'Buckets', 'Pairs', 'Role', 'Severity', 'Encryption', 'DiskVerdict', 'LinkState'];
    assert.deepEqual([...types.keys()].filter((name) => !(name in SCHEMAS)).sort(), plain.sort());
  });

  it('are found to differ where they do', () => {
    const source = `
      export interface Kept { generation: string; written?: string; in_force: boolean; luns: number; gone: number; removed: 'a' | 'b'; targets: number[]; hosts: { a: number } }
      export interface JobView { state: 'running' | 'finished'; log: { at: string }[] }`;
    const compared = new Comparison(declared(source), schemas);
    compared.compare('Kept', 'Kept');
    compared.compare('JobView', 'JobView');
    compared.compare('Kept', 'Nothing');
    assert.deepEqual(compared.differ, [
      'Kept.generation: it is number', 'Kept.written: it is always there', 'Kept.gone: the document has no such member', 'Kept.removed: it is number',
      'Kept.targets: it is no list', 'Kept.hosts: the document has no members there',
      'JobView.state: it is "cancelled" or "failed" or "finished" or "interrupted" or "running"',
      'Kept: the document has no Nothing',
    ]);
    assert.deepEqual([compared.lacking.get('Kept'), compared.lacking.get('JobView.log[]')], [['grants', 'problem'], ['text']]);
  });
});
