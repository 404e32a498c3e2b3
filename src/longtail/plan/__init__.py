"""What training will need on this machine, before it begins.

model, Split, folder of the model  ->  Plan: memory, GPU memory and disk beside what is free, and time
"""

from longtail.plan.resources import Plan, Resource, check_resources, plan_training

__all__ = ["Plan", "Resource", "check_resources", "plan_training"]
