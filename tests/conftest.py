"""What all tests share: no property test fails because the machine was busy."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
