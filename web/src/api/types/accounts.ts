// Who may do what: users, tokens, logins; and the certificate that they see.

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
