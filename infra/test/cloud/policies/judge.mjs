// Reads {account, policies, calls} and prints the names of the calls that the policies deny. A
// call is an action, an ARN and condition keys; deployer_test.py derives them from the template.

import { readFileSync } from 'node:fs'

import { allowed, leftToIam } from './simulate.mjs'

const { account, policies, calls } = JSON.parse(readFileSync(0, 'utf8'))
const may = ([action, arn, context]) =>
  allowed({ principal: `arn:aws:iam::${account}:role/deployer`, action, arn, account, context }, policies, leftToIam(account))
console.log(JSON.stringify(Object.keys(calls).filter((name) => !may(calls[name]))))
