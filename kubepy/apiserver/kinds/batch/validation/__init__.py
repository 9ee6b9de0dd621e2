"""Validation of Jobs, of their status, and of CronJobs (``pkg/apis/batch/validation``)."""
