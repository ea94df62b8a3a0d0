import { describe, expect, it } from 'vitest';
import type { Alert, AlertRule, Status } from '../api/types.ts';
import { createReceiver, receiverForm, ruleForm, setReceiver, setRule, type ReceiverForm } from './alert_changes.ts';
import { atLeast, ordered } from './alerts.ts';
import { curl } from './changes.ts';
import { verdict } from './verdict.ts';

const alert = (id: number, more: Partial<Alert> = {}): Alert => ({
  id, state: 'firing', severity: 'warning', rule: 'pool_filling', title: 'A pool fills up', kind: 'pool', object: `pool-${id}`,
  cause: `pool-${id} is 85 % full`, next_step: 'add space', doc: '', fired: '2026-11-26T10:00:00.000Z', steps: [], ...more,
});
const status = { health: 'ok', problems: [], portals: [], pools: [], counts: { luns: 1 } } as unknown as Status;

describe('alerts', () => {
  it('have those first that nobody takes care of, and of them the worst', () => {
    const all = [alert(1), alert(2, { state: 'silenced', severity: 'critical' }), alert(3, { severity: 'critical' }), alert(4, { state: 'acknowledged' })];
    expect(ordered(all).map((one) => one.id)).toEqual([3, 1, 4, 2]);
  });

  it('are sent from a severity on, of which none is worse than the worst', () => {
    expect((['info', 'warning', 'critical'] as const).map(atLeast)).toEqual(['all', 'warnings and worse', 'critical ones']);
  });

  it('say what to do first, with their next step; a problem of the same object is not said twice', () => {
    const problems = ['LUN vm01 is offline: its disk is gone', 'pool other is away'];
    const all = [alert(1), alert(2, { severity: 'critical', kind: 'lun', object: 'vm01', cause: 'vm01 is offline' }), alert(3, { severity: 'info' })];
    const said = verdict({ ...status, health: 'degraded', problems }, [], all);
    expect(said.state).toBe('bad');
    expect(said.todo).toEqual([
      { text: 'Vm01 is offline.', next: 'Add space.', href: '/alerts/2' },
      { text: 'pool other is away' },
      { text: 'Pool-1 is 85 % full.', next: 'Add space.', href: '/alerts/1' },
    ]);
  });

  it('leave the verdict good where somebody takes care of them', () => {
    const said = verdict(status, [], [alert(1, { state: 'acknowledged' }), alert(2, { state: 'resolved' })]);
    expect(said.state).toBe('good');
    expect(said.sentence).toContain('1 alert acknowledged or silenced.');
  });
});

const rule: AlertRule = {
  id: 'pool_filling', title: '', enabled: true, severity: 'warning', condition: '', over: '', hold_seconds: 60, clear_seconds: 60, next_step: '', doc: '',
  bounds: { above_percent: { value: 80, default: 80, least: 1, most: 100, meaning: '' }, below_percent: { value: 70, default: 78, least: 1, most: 100, meaning: '' } },
  is_changed: true, firing: 0,
};

describe('a rule that is changed', () => {
  it('keeps what somebody else changed of it before, and says what is new alone', () => {
    const form = { ...ruleForm(rule), bounds: { above_percent: 85, below_percent: 70 } };
    const change = setRule(rule, form);
    expect(change.body).toEqual({ severity: 'warning', hold_seconds: 60, clear_seconds: 60, bounds: { above_percent: 85, below_percent: 70 } });
    expect(change.cli).toBe('causeway alert rule set pool_filling above_percent=85');
  });
  it('is as it was where nothing of it differs', () => {
    const clean = { ...rule, is_changed: false, bounds: {} };
    expect(setRule(clean, ruleForm(clean)).body).toEqual({});
  });
});

describe('a receiver', () => {
  it('shows its secrets neither in a command line nor in a call', () => {
    const form = { ...receiverForm(), name: 'ops', url: 'https://chat.example.com/SECRET', token: 'SECRET' };
    const change = createReceiver(form);
    expect(JSON.stringify(change.body)).toContain('SECRET');
    expect(change.cli).toBe('causeway alert receiver create ops --url-file FILE --bearer-file FILE');
    expect(change.cli + curl(change, 'http://x')).not.toContain('SECRET');
  });
  it('keeps secrets that are not typed anew, and loses a login that was taken away', () => {
    const form = { ...receiverForm(), name: 'mail', kind: 'mail' as const, server: 'mx', from: 'a@b.c', to: 'd@e.f', user: '' };
    expect(createReceiver({ ...form, port: '2525' }).body).toMatchObject({ mail: { port: 2525 } });
    expect(setReceiver('mail', form, form).body).toMatchObject({ mail: { server: 'mx', user: null, password: null, to: ['d@e.f'] } });
    const hook = { ...form, kind: 'webhook' as const };
    expect(setReceiver('hook', hook, hook).body).toMatchObject({ webhook: {} });
  });
  it('is changed on the command line in what differs from the receiver as it was, also where it becomes as new ones are', () => {
    const was = { ...receiverForm(), name: 'p', kind: 'command' as const, command: 'pager', enabled: false, least: 'info' as const, remind: 1, resolved: false, rules: ['lun_offline'] };
    const line = (form: Partial<ReceiverForm>) => setReceiver('p', { ...was, ...form }, was).cli.replace('causeway alert receiver set p ', '');
    expect(line({ least: 'warning' })).toBe('--least warning');
    expect(line({ remind: 24 })).toBe('--remind-hours 24');
    expect(line({ enabled: true })).toBe('--enabled true');
    expect(line({ resolved: true })).toBe('--resolved true');
    expect(line({ rules: [] })).toBe('--rules=');
    expect(line({})).toBe('--enabled false');
    const mail = { ...receiverForm(), name: 'p', kind: 'mail' as const, server: 'mx', encryption: 'tls' as const, user: 'u', from: 'a@b.c', to: 'd@e.f, g@h.i' };
    expect(setReceiver('p', { ...mail, encryption: 'starttls', user: '' }, mail).cli).toBe('causeway alert receiver set p --encryption starttls --user=');
  });
});
