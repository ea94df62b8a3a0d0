// Requests to the daemon that served this page.

import { Refused, Unreachable, type Problem } from './problem.ts';
import type { Me } from './types.ts';

export const API = '/api/v1/';
const PATIENCE_MS = 15_000;
/** A login or a token is needed: not that a password is wrong. */
const LOGIN_NEEDED = 'CWY5002';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Someone has to log in: called with every 401. */
let onLogin: () => void = () => undefined;
/** Changes by cookie need it, so that no other site can make them. */
let csrf: string | undefined;
/** A token that somebody typed; it is nowhere but in this page's memory. */
let bearer: string | undefined;

export function whenLoginNeeded(call: () => void): void {
  onLogin = call;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>('GET', path, undefined, { signal });
}

/** A text as it is: not a document. */
export async function text(path: string): Promise<string> {
  return (await ask('GET', path)).text;
}

/** What was read, and its tag: a change that is meant for it and nothing newer names it. */
export interface Seen<T> {
  path: string;
  value: T;
  tag: string | undefined;
}

export async function see<T>(path: string): Promise<Seen<T>> {
  const answer = await ask('GET', path);
  return { path, value: JSON.parse(answer.text) as T, tag: answer.tag };
}

export interface Extras {
  signal?: AbortSignal | undefined;
  /** The change is refused where the object has another tag by now. */
  tag?: string | undefined;
  /** Sent again with the same one, the request gets the same answer, and nothing is done twice. */
  key?: string | undefined;
}

/** The request with this key is being carried out. */
const UNDER_WAY = 'CWY5012';

/** Nobody knows yet whether it was done. */
export const isOpen = (error: unknown) => error instanceof Unreachable || (error instanceof Refused && error.problem.code === UNDER_WAY);

/** Requests of one dialog: until one is answered, the same is sent with the same key. */
export function once(): typeof request {
  let [known, key] = ['', ''];
  return async <T>(method: Method, path: string, body?: unknown, extras: Extras = {}) => {
    const of = JSON.stringify([method, path, body, extras.tag]);
    // Not a UUID of the browser's: it makes some at secure addresses alone.
    if (of !== known) [known, key] = [of, [...crypto.getRandomValues(new Uint32Array(4))].join('-')];
    try {
      return await request<T>(method, path, body, { ...extras, key });
    } catch (error) {
      if (!isOpen(error)) known = '';
      throw error;
    }
  };
}

export async function request<T>(method: Method, path: string, body?: unknown, extras: Extras = {}): Promise<T> {
  const { text } = await ask(method, path, body, extras);
  const answer = (text ? JSON.parse(text) : undefined) as T;
  // A login and a new password begin a session, whose changes bring this along.
  if (/^(login|me)\b/.test(path)) csrf = (answer as Partial<Entered> | undefined)?.csrf ?? csrf;
  return answer;
}

async function ask(method: Method, path: string, body?: unknown, { signal, tag, key }: Extras = {}): Promise<{ text: string; tag: string | undefined }> {
  const headers: Record<string, string> = { accept: 'application/json', ...bearing() };
  if (tag) headers['if-match'] = tag;
  if (key) headers['idempotency-key'] = key;
  if (body !== undefined) headers['content-type'] = 'application/json';
  // What takes long is a job: it is answered as soon as that has begun.
  if (method !== 'GET') headers['prefer'] = 'respond-async';
  if (method !== 'GET' && csrf) headers['x-causeway-csrf'] = csrf;
  const limit = AbortSignal.timeout(PATIENCE_MS);
  let answer: Response;
  try {
    answer = await fetch(API + path, {
      method,
      headers,
      credentials: 'same-origin',
      cache: 'no-store',
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(String(error));
  }
  const text = await answer.text();
  if (answer.ok) return { text, tag: answer.headers.get('etag') ?? undefined };
  const problem = read(answer, text);
  // Who has not logged in may still be allowed to read; what is missing then is no reason to ask.
  if (problem.code === LOGIN_NEEDED && !/^(me$|events|alerts$|jobs$|disks$|history\b|config$)/.test(path)) onLogin();
  throw new Refused(problem);
}

function read(answer: Response, text: string): Problem {
  try {
    return JSON.parse(text) as Problem;
  } catch {
    return { title: answer.statusText, status: answer.status, detail: text.slice(0, 300) };
  }
}

/** `undefined`: nobody has logged in, or the daemon has no users. */
export async function me(): Promise<Me | undefined> {
  try {
    return await get<Me>('me');
  } catch (error) {
    if (error instanceof Refused && [401, 404].includes(error.problem.status)) return undefined;
    throw error;
  }
}

interface Entered {
  csrf: string;
  must_change: boolean;
}

/** Whether the password has to be changed before anything else is answered. */
export async function login(user: string, password: string): Promise<boolean> {
  return (await request<Entered>('POST', 'login', { user, password })).must_change;
}

/** All other sessions of the user end. */
export async function setPassword(old: string, wanted: string): Promise<void> {
  await request<Entered>('PUT', 'me/password', { old, new: wanted });
}

/** What says who asks, where that is a token: a browser sends cookies by itself. */
export function bearing(): Record<string, string> {
  return bearer ? { authorization: `Bearer ${bearer}` } : {};
}

/** Requests carry this token from now on. */
export function useToken(token: string): void {
  bearer = token.trim();
}

export async function logout(): Promise<void> {
  if (!bearer) await request('POST', 'logout');
  bearer = undefined;
  csrf = undefined;
}
