import { describe, expect, it } from 'vitest';
import type { Alert } from '../api/types.ts';
import { fromAlerts, fromSingle } from './alike.ts';

const alert = (id: number, object: string, more: Partial<Alert> = {}) =>
  ({ id, state: 'firing', severity: 'warning', rule: 'device_health', title: 'A disk is gone from its bay', kind: 'bay', object, cause: `bay ${object} is dark`, next_step: 'push it in', ...more }) as Alert;
const bays = ['11', '2', '5', '8'].map((name, i) => alert(i + 1, name));

describe('what is to be done', () => {
  it('is one thing where three or more objects have the same, named in their order, with the way to all', () => {
    expect(fromAlerts(bays)).toEqual([{ text: 'A disk is gone from its bay: 4 bays (2, 5, 8, 11).', next: 'Push it in.', href: '/alerts?q=device_health' }]);
    const more = [...bays, ...['a', 'b'].map((name, i) => alert(10 + i, name))];
    expect(fromAlerts(more)[0]?.text).toBe('A disk is gone from its bay: 6 bays (2, 5, 8, 11 …).');
  });
  it('is said with the cause of each where these are two, of another kind, or of another rule', () => {
    expect(fromAlerts(bays.slice(0, 2)).map((one) => [one.text, one.href])).toEqual([['Bay 11 is dark.', '/alerts/1'], ['Bay 2 is dark.', '/alerts/2']]);
    const mixed = [alert(20, 'sda', { kind: 'disk', cause: 'sda fails' }), ...bays, alert(21, 'x', { rule: 'other', cause: 'x is full' })];
    expect(fromAlerts(mixed).map((one) => one.text)).toEqual(['Sda fails.', 'A disk is gone from its bay: 4 bays (2, 5, 8, 11).', 'X is full.']);
  });
  it('promises no remedy for all that is one of some', () => {
    expect(fromAlerts([...bays, alert(9, '7', { next_step: 'buy another' })])[0]?.next).toBe('Each of them says what to do.');
  });
  it('is one thing for hosts with a single path as well', () => {
    expect(fromSingle(['a', 'b', 'c'], true)).toEqual([{ text: '3 hosts have a single path (a, b, c): log them in to a second portal.', href: '/hosts?sort=state' }]);
    expect(fromSingle(['a'], false)).toEqual([{ text: 'Host a has a single path: the node has one portal only, give it another in node.toml.', href: '/hosts/a' }]);
  });
});
